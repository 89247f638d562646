# SPDX-License-Identifier: MIT
"""`--debug` in the launcher: assigns nodes to debuggers, and checks that this is possible."""

from spcomm.launch.base.usage import UsageError
from spcomm.launch.cmdline.plan import in_path
from spcomm.launch.cmdline.ranks import Debug

TYPE_CHECKING = False
if TYPE_CHECKING:
    from spcomm.launch.cmdline.groups import Group, Names
    from spcomm.launch.cmdline.options import Options
    from spcomm.launch.cmdline.plan import Plan

_INTERACTIVE = ("pdb", "gdb")  # they read commands from standard input


def prepare(options: "Options", plans: "list[Plan]", groups: "list[Group]", names: "Names") -> "int | None":
    """Set in each plan which of its nodes are debugged. Return the node that needs standard input, if there is one.

    Raises `UsageError` for a debugger that is missing, or unsuitable for these nodes.
    """
    debug = options.debug
    indices = sorted(debug.ranks.indices(groups))
    windows = options.window.indices(groups) if options.window is not None else frozenset()
    needy = []
    for plan in plans:
        mine = [index for index in indices if index in plan.indices]
        if mine:
            tool = debug.tool or ("pdb" if plan.python is not None else "gdb")
            plan.debugged = frozenset(mine)
            plan.debug = {"tool": tool}
            if plan.host is None:
                plan.debug["command"] = command(tool, plan)
            else:
                plan.debug["host"] = plan.host.name
            if tool in _INTERACTIVE:
                plan.in_panes = windows.intersection(mine)
                if plan.in_panes and plan.host is not None:
                    raise _no_pane(debug, plan, names)
                needy += sorted(plan.debugged - plan.in_panes)
    if len(needy) > 1:
        raise UsageError(
            f"spcomm run: {_spelt(debug)}: {names.nodes(needy)} cannot share the standard input; give each a "
            f"pane of tmux: {_spelt(debug)} --window {debug.ranks.text}; or choose one: --debug={needy[0]}"
        )
    in_panes = frozenset(index for plan in plans for index in plan.in_panes)
    if options.stdin is not None and (both := options.stdin.indices(groups) & in_panes):
        raise UsageError(
            f"spcomm run: --stdin {options.stdin.text} and {_spelt(debug)}: the debugger of "
            f"{names.nodes(sorted(both))} has the keyboard of its pane; give the standard input to other nodes"
        )
    if needy and options.stdin is not None and options.stdin.indices(groups) != frozenset(needy):
        raise UsageError(
            f"spcomm run: --stdin {options.stdin.text} and {_spelt(debug)}: the debugger of {names.nodes(needy)} needs "
            "the standard input; leave --stdin out"
        )
    return needy[0] if needy else None


def _no_pane(debug: Debug, plan: "Plan", names: "Names") -> UsageError:
    return UsageError(
        f"spcomm run: {_spelt(debug)} and --window: {names.nodes(sorted(plan.in_panes))} on {plan.host.name}: "
        "a pane has a keyboard of this machine, and a debugger there cannot have it as its terminal; debug one "
        f"node, without --window, or use --debug=debugpy:{debug.ranks.text}"
    )


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
