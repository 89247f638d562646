# SPDX-License-Identifier: MIT
"""`%load_ext spcomm`: the magics `%%spcomm` and `%spcomm` of IPython and Jupyter."""

import ast
import atexit
import base64
import contextlib
import html
import os
import sys
import tempfile
import time
import tokenize
import traceback
from typing import TYPE_CHECKING

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class
from IPython.display import HTML, DisplayHandle, Image, display

from spcomm._core import segments
from spcomm._core.errors import SpcommError
from spcomm.notebook import completer, magic_options
from spcomm.notebook.cluster import Cluster
from spcomm.notebook.errors import ClusterError
from spcomm.text import counted

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

# The page of a trace, in a document of its own that cannot reach the notebook's.
_FRAME = (
    '<iframe srcdoc="{}" sandbox="allow-scripts allow-downloads" style="width:100%;height:{}px;border:0" '
    'title="the page of the trace"></iframe>'
)
_FRAME_BYTES = 2_000_000  # Jupyter's server drops messages beyond a megabyte a second, over three seconds


def load_ipython_extension(shell: "InteractiveShell") -> None:
    """Called by ``%load_ext spcomm``."""
    magics = SpcommMagics(shell)
    shell.register_magics(magics)
    completer.install(shell, magics)
    if not shell.custom_exceptions:  # else they are the user's own
        shell.set_custom_exc((NameError,), _show_name_error)
    atexit.register(magics.stop)


def unload_ipython_extension(shell: "InteractiveShell") -> None:
    """Called by ``%unload_ext spcomm``: the nodes end."""
    magics = shell.magics_manager.registry.pop("SpcommMagics", None)
    if magics is not None:
        completer.remove(shell)
        if shell.custom_exceptions == (NameError,):
            shell.set_custom_exc((), None)
        magics.stop()
        atexit.unregister(magics.stop)
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("spcomm", None)
    for name in ("spcomm_check", "spcomm_write"):
        shell.magics_manager.magics["cell"].pop(name, None)


def _show_name_error(
    shell: "InteractiveShell", kind: type, error: NameError, lines: object, tb_offset: "int | None" = None
) -> None:
    """Show the traceback as always; a cell that uses names of the nodes in the notebook's own process gets a hint."""
    name = error.name
    magics = shell.magics_manager.registry.get("SpcommMagics")
    if name == "comm" and name not in shell.user_ns:
        error.add_note("comm exists on the nodes: begin the cell with %%spcomm")
    elif name and name not in shell.user_ns and name in completer.names_of_nodes(magics):
        error.add_note(
            f"{name} exists on the nodes: begin the cell with %%spcomm, or take their values: "
            f"{name} = %spcomm pull {name}"
        )
    shell.showtraceback((kind, error, lines), tb_offset=tb_offset)


class TextOnlyError:
    """Base of an error that is shown by its text alone: the lines of this package that led to it are no help."""

    def _render_traceback_(self) -> "list[str]":
        return str(self).splitlines()


def _told(error: BaseException, text: str) -> BaseException:
    """The same kind of error, by name, too."""
    base = KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else Exception
    return type(type(error).__name__, (TextOnlyError, base), {"__module__": "spcomm"})(text)


@magics_class
class SpcommMagics(Magics):
    """One cluster for each notebook."""

    cluster: "Cluster | None" = None

    @cell_magic("spcomm")
    def run_cell(self, line: str, cell: str) -> "list | None":
        return self._guarded(lambda: self._run_cell(line, cell))

    run_cell.__doc__ = magic_options.cell_parser().format_help()

    @line_magic("spcomm")
    def command(self, line: str) -> object:
        return self._guarded(lambda: self._command(line))

    command.__doc__ = magic_options.line_parser().format_help()

    @cell_magic("spcomm_check")
    def check_cell(self, line: str, cell: str) -> None:
        """``%%spcomm_check NN``: check a cell that is the program of an exercise."""
        from spcomm.notebook import checking

        self._guarded(lambda: checking.check_cell(line, cell))

    @cell_magic("spcomm_write")
    def write_cell(self, line: str, cell: str) -> None:
        """``%%spcomm_write FILE``: write a cell to a file, but not over a program that was written elsewhere.

        ``--replace`` does, and keeps the other program as ``FILE.before``.
        """
        from spcomm.notebook import checking

        self._guarded(lambda: checking.write_cell(line, cell))

    def stop(self) -> None:
        """End the nodes, if there are any."""
        cluster, self.cluster = self.cluster, None
        if cluster is not None:
            cluster.close()

    def _guarded(self, work: "object") -> object:
        try:
            return work()  # type: ignore[operator]
        except magic_options.MagicError as error:
            raise UsageError(str(error)) from None
        except SyntaxError as error:
            told = _told(error, "".join(traceback.format_exception_only(error)))
        except MemoryError:  # by Python's parser, whose lines are of no use; RecursionError is reported below
            raise UsageError("%%spcomm: the cell is too deep, or there is no memory left") from None
        except (SpcommError, TypeError, ValueError, OSError, RecursionError, KeyboardInterrupt) as error:
            told = _told(
                error, str(error) if isinstance(error, ClusterError) else f"{type(error).__name__}: {error}"
            )
        raise told from None

    # Cells

    def _run_cell(self, line: str, cell: str) -> "list | None":
        options = magic_options.parse(line, segments.NODES_MAX)
        shown = f"%%spcomm {line}".rstrip() + "\n" + cell
        # Lines are counted as the notebook does, from %%spcomm on.
        values = self._execute(options, "\n" + cell, self._name(), shown)
        hidden = magic_options.ends_silently(cell) or all(value is None for value in values)
        return None if hidden else values

    def _run_program(self, words: "list[str]") -> None:
        options, file, arguments = magic_options.program(words, segments.NODES_MAX)
        try:
            with tokenize.open(file) as opened:  # with the encoding that it declares
                source = opened.read()
        except OSError as error:
            raise magic_options.MagicError(f"%spcomm run: cannot read {file}: {error.strerror}") from None
        self._execute(options, source, file, source, arguments)

    def _execute(
        self,
        options: magic_options.CellOptions,
        source: str,
        name: str,
        shown: str,
        arguments: "list[str] | None" = None,
    ) -> list:
        _check(source, name)
        cluster = self._prepared(options)
        trace = _trace_file() if options.trace or options.watch else None
        picture = self._picture() if options.watch else None
        try:
            return cluster.execute(
                source,
                options.timeout,
                name=name,
                shown_as=shown,
                grouped=options.group,
                figure=_show_figure,
                trace=trace,
                watch=None if picture is None else lambda text: picture.update(HTML(text)),
                arguments=arguments,
            )
        finally:
            if trace is not None:
                _show_trace(trace, picture)

    def _picture(self) -> "DisplayHandle | None":
        """Return a place in the output that can change; None, after a sentence, where output only grows."""
        if getattr(self.shell, "kernel", None) is None:
            _say("--watch needs a notebook: this terminal shows the timeline at the end, as with --trace")
            return None
        try:
            import spcomm.notebook.live_view  # noqa: F401
        except ImportError as error:
            _say(f"--{error}")
            return None
        return display(HTML(""), display_id=True)

    def _name(self) -> str:
        """`In[3]`, as the notebook calls the cell. IPython's own count may have gone on already."""
        frame = sys._getframe()
        while frame is not None:
            found = self.shell.compile.format_code_name(frame.f_code.co_filename)
            if found is not None:
                return found[1]
            frame = frame.f_back
        return f"In[{self.shell.execution_count}]"

    def _prepared(self, options: magic_options.CellOptions) -> Cluster:
        """Return the nodes that the cell asks for."""
        room = self.cluster.room if self.cluster is not None else None
        if options.boxes is not None and (options.room or room) is not None:
            raise magic_options.MagicError(
                f"%%spcomm: --boxes {options.boxes}: in a room each member is a box; leave --boxes out"
            )
        if self.cluster is not None and options.room not in (None, room):
            self.stop()
            _say(f"the nodes are in the room at {options.room} now: they are new, and all variables are gone")
        if self.cluster is None and options.room is not None:
            self.cluster = Cluster(options.nodes, room=options.room)
            return self.cluster
        if self.cluster is None:
            if options.nodes is None:
                raise magic_options.MagicError(
                    "%%spcomm: there are no nodes yet; say how many, as in %%spcomm -n 4"
                )
            self.cluster = Cluster(options.nodes, boxes=options.boxes or 1)
            return self.cluster
        before, boxes = self.cluster.size, self.cluster.boxes
        if options.boxes not in (None, boxes):
            self.cluster.restart(options.nodes, boxes=options.boxes)
            found = f"{counted(self.cluster.size, 'node')} in {counted(self.cluster.boxes, 'box', 'boxes')}"
            _say(f"{found}: they are new, and all variables are gone")
        elif options.nodes not in (None, before):
            self.cluster.restart(options.nodes)
            nodes = counted(options.nodes, "node")
            _say(f"{nodes} instead of {before}: they are new, and all variables are gone")
        elif options.fresh:
            self.cluster.restart()
            _say("the nodes are new, and their variables are gone")
        return self.cluster

    # %spcomm

    def _command(self, line: str) -> object:
        verb, names = magic_options.command(line)
        if verb == "check":
            from spcomm.notebook import checking

            return checking.check(line.partition("check")[2])
        if verb == "explain":
            from spcomm.diagnose import explain

            with contextlib.suppress(SystemExit):  # of a wrong word, which it has explained
                explain.main(names)
            return None
        if verb == "run":
            self._run_program(names)
            return None
        if verb == "status":
            print(self._status())
            return None
        if verb == "stop":
            print(
                "spcomm: the nodes have ended" if self.cluster is not None else "spcomm: there are no nodes"
            )
            self.stop()
            return None
        if self.cluster is None:
            raise magic_options.MagicError(
                f"%spcomm {verb}: there are no nodes yet; a cell starts them: %%spcomm -n 4"
            )
        return self._push(names) if verb == "push" else self._pull(names)

    def _push(self, names: "list[str]") -> None:
        space = self.shell.user_ns
        missing = [name for name in names if name not in space]
        if missing:
            raise magic_options.MagicError(
                f"%spcomm push {missing[0]}: there is no variable {missing[0]} in this notebook"
            )
        self.cluster.push(**{name: space[name] for name in names})  # type: ignore[union-attr]

    def _pull(self, names: "list[str]") -> object:
        found = {name: self.cluster.pull(name) for name in names}  # type: ignore[union-attr]
        return found if len(names) > 1 else found[names[0]]

    def _status(self) -> str:
        if self.cluster is None:
            return "spcomm: there are no nodes; a cell starts them: %%spcomm -n 4"
        processes = self.cluster.processes
        nodes = counted(self.cluster.size, "node")
        if self.cluster.boxes > 1:
            nodes += f" in {self.cluster.boxes} boxes"
        if self.cluster.room is not None:
            nodes += f", in the room at {self.cluster.room}"
        if not processes:
            return f"spcomm: {nodes} have ended; the next cell starts new ones"
        since = time.strftime("%H:%M:%S", time.localtime(self.cluster.since))
        rows = [f"  node {rank}  process {process}" for rank, process in enumerate(processes)]
        return "\n".join([f"spcomm: {nodes}, since {since}, waiting for a cell", *rows])


def _check(source: str, name: str) -> None:
    """A cell that is no Python is shown as the notebook shows its own, and no node sees it."""
    try:
        compile(source, name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except SyntaxError as error:
        line = (error.text or "").lstrip()
        if line.startswith(("%", "!")):
            where = f"{name}, line {error.lineno}"
            raise magic_options.MagicError(
                f"%%spcomm: {where}: nodes run plain Python, and {line.split()[0]} is IPython's; "
                "put it into a cell of its own"
            ) from None
        raise


def _show_figure(rank: int, png: bytes) -> None:
    print(f"[{rank}] figure:", flush=True)
    display(Image(png, alt=f"figure of node {rank}"))


def _trace_file() -> "str | None":
    try:
        number, path = tempfile.mkstemp(prefix="spcomm-", suffix=".json")
    except OSError as error:
        _say(f"there is no timeline: no file for the trace can be made ({error})")
        return None
    os.close(number)
    return path


def _show_trace(path: str, picture: "DisplayHandle | None") -> None:
    """Show the timeline in place of the picture of the run; if that fails, the cell still has its result or error."""
    drawing = path + ".png"
    try:
        if os.path.getsize(path):  # else the cell has not begun, or has reported why there is no trace
            _draw_trace(path, drawing, picture)
    except Exception as error:
        _say(f"the timeline cannot be shown ({type(error).__name__}: {error})")
    finally:
        for file in (path, drawing):
            if os.path.exists(file):
                os.unlink(file)


def _draw_trace(path: str, drawing: str, picture: "DisplayHandle | None") -> None:
    """Show it as a picture, or in words if there is no matplotlib; in place of another picture also as a page."""
    from spcomm.trace import page, reader, summary
    from spcomm.trace import picture as pictures
    from spcomm.trace.errors import TraceError

    found = reader.read(path)
    shown = {"text/plain": summary.text(found)}
    try:
        pictures.timeline(found, drawing, in_notebook=True)
    except TraceError as error:
        _say(str(error))
    else:
        with open(drawing, "rb") as file:
            shown["image/png"] = base64.b64encode(file.read()).decode()
    if picture is None:
        display(shown, raw=True)
        return
    frame = _FRAME.format(
        html.escape(page.page(found)), min(1300, 760 + 70 * found.nodes)
    )  # all of up to 7 nodes
    if len(frame) <= _FRAME_BYTES:
        shown["text/html"] = frame
    else:
        _say("the trace is too long for a page in a notebook; spcomm run --watch=browser shows one")
    picture.update(shown, raw=True)


def _say(text: str) -> None:
    print(f"spcomm: {text}", file=sys.stderr, flush=True)
