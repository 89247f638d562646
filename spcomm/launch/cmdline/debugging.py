# SPDX-License-Identifier: MIT
"""`--debug` in the launcher: assigns nodes to debuggers, and checks that this is possible."""

from typing import TYPE_CHECKING

from spcomm.launch.base.record import replace
from spcomm.launch.base.usage import UsageError
from spcomm.launch.cmdline.plan import in_path
from spcomm.launch.cmdline.ranks import Debug

if TYPE_CHECKING:
    from spcomm.launch.cmdline.groups import Names, Placement
    from spcomm.launch.cmdline.options import Options
    from spcomm.launch.cmdline.plan import Plan

_INTERACTIVE = ("pdb", "gdb")  # they read commands from standard input


def prepare(options: "Options", placement: "Placement") -> "tuple[Placement, int | None]":
    """Add the nodes of each program that are debugged. Also return the node that needs standard input, if there is one.

    Raises `UsageError` for a debugger that is missing, or unsuitable for these nodes.
    """
    debug, groups, names = options.debug, placement.groups, placement.names
    indices = debug.ranks.indices(groups)
    windows = options.window.indices(groups) if options.window is not None else frozenset()
    machines = [
        [_debugged(plan, debug, indices, windows, names) for plan in plans] for plans in placement.machines
    ]
    placement = replace(placement, machines=machines)
    needy = [
        index
        for plan in placement.plans
        for index in sorted(plan.debugged - plan.in_panes)
        if plan.debug["tool"] in _INTERACTIVE
    ]
    if len(needy) > 1:
        raise UsageError(
            f"spcomm run: {_spelt(debug)}: {names.nodes(needy)} cannot share the standard input; give each a "
            f"pane of tmux: {_spelt(debug)} --window {debug.ranks.text}; or choose one: --debug={needy[0]}"
        )
    if options.stdin is not None and (both := options.stdin.indices(groups) & placement.in_panes):
        raise UsageError(
            f"spcomm run: --stdin {options.stdin.text} and {_spelt(debug)}: the debugger of "
            f"{names.nodes(sorted(both))} has the keyboard of its pane; give the standard input to other nodes"
        )
    if needy and options.stdin is not None and options.stdin.indices(groups) != frozenset(needy):
        raise UsageError(
            f"spcomm run: --stdin {options.stdin.text} and {_spelt(debug)}: the debugger of {names.nodes(needy)} needs "
            "the standard input; leave --stdin out"
        )
    return placement, needy[0] if needy else None


def _debugged(
    plan: "Plan", debug: Debug, indices: "frozenset[int]", windows: "frozenset[int]", names: "Names"
) -> "Plan":
    """Return the program with those of its nodes that are debugged. `windows`: nodes that have one."""
    mine = indices.intersection(plan.indices)
    if not mine:
        return plan
    tool = debug.tool or ("pdb" if plan.python is not None else "gdb")
    how = {"command": command(tool, plan)} if plan.host is None else {"host": plan.host.name}
    in_panes = windows & mine if tool in _INTERACTIVE else frozenset()
    if in_panes and plan.host is not None:
        raise UsageError(
            f"spcomm run: {_spelt(debug)} and --window: {names.nodes(sorted(in_panes))} on {plan.host.name}: "
            "a pane has a keyboard of this machine, and a debugger there cannot have it as its terminal; debug one "
            f"node, without --window, or use --debug=debugpy:{debug.ranks.text}"
        )
    return replace(plan, debugged=mine, debug={"tool": tool, **how}, in_panes=in_panes)


def _spelt(debug: Debug) -> str:
    tool = f"{debug.tool}:" if debug.tool else ""
    return f"--debug={tool}{debug.ranks.text}"


def command(tool: str, plan: "Plan") -> "list[str] | None":
    """Return the command that is executed instead of the program; None: the debugger is a part of the node.

    Called where the nodes are. Raises `UsageError` for a debugger that is missing there, or unsuitable.
    """
    if tool == "gdb":
        return _gdb(plan)
    if plan.python is None:
        raise UsageError(
            f"spcomm run: --debug={tool} is for Python; for {plan.name}, an executable, use --debug=gdb:RANKS"
        )
    if tool == "debugpy":
        _check_debugpy(plan)
        return None
    if plan.kind != "executable":
        return None
    return [*plan.arguments[: -len(plan.python)], "-m", "spcomm.launch.local.debugger", *plan.python]


def _gdb(plan: "Plan") -> "list[str]":
    if plan.kind != "executable":
        raise UsageError(
            f"spcomm run: --debug=gdb is for executables; for {plan.name} use --debug=pdb:RANKS, or --start exec to "
            "see its Python from below"
        )
    found = in_path("gdb")
    if found is None:
        raise UsageError("spcomm run: --debug=gdb needs gdb, which is not here; install it")
    # A prompt in the middle of a long answer would take the next of several nodes' commands.
    return [found, "-q", "-iex", "set pagination off", "--args", plan.target, *plan.arguments[1:]]


def _check_debugpy(plan: "Plan") -> None:
    import importlib.util

    if plan.kind == "executable":
        raise UsageError(
            "spcomm run: --debug=debugpy is for nodes that are forked, not started one by one; leave --start exec out"
        )
    if importlib.util.find_spec("debugpy") is None:
        raise UsageError(
            "spcomm run: --debug=debugpy needs debugpy, which is not here; install it with: "
            "python -m pip install debugpy (pdb is there: --debug=pdb:0)"
        )
