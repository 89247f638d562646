# SPDX-License-Identifier: MIT
"""Output of a trace when the run is over: the file or the page of `--trace`, the table of `--virtual`, the page of
`--watch`."""

import os
import sys
from typing import TYPE_CHECKING

from spcomm.launch.base.process import signal_name
from spcomm.launch.base.usage import complain

if TYPE_CHECKING:
    from typing import Any

    from spcomm.launch.cmdline.options import Options
    from spcomm.launch.supervise.watch_page import WatchPage


def finish(options: "Options", group: "Any", code: int, page: "WatchPage | None") -> int:
    """Write the trace, also of a failed run. The exit code is the run's, unless that was 0 and writing fails."""
    what = "no virtual times" if options.virtual else "the page has no trace"
    if _is_page(options):
        what = f"{options.trace} was not written"
    try:
        return _finish(what, options, group, code, page)
    except KeyboardInterrupt as error:
        what = f"the trace was not written to {options.trace}" if options.trace is not None else what
        complain(f"spcomm: {what}: {signal_name(error.args[0])} came before its end")
        return code or 128 + error.args[0]


def _finish(what: str, options: "Options", group: "Any", code: int, page: "WatchPage | None") -> int:
    is_page = _is_page(options)
    if options.trace is not None and not is_page:
        return _complete(options.trace, options, group, code, page)
    if (
        code and page is None and not is_page
    ):  # it has no virtual times, and its failure report must come last
        return code
    import tempfile

    try:
        folder = tempfile.TemporaryDirectory(prefix="spcomm-")
    except OSError as error:
        complain(
            f"spcomm: {what}: a folder for the trace cannot be made ({error.strerror}); set TMPDIR to one"
        )
        return code or 125
    with folder as place:
        return _complete(os.path.join(place, "trace.json"), options, group, code, page)


def _complete(path: str, options: "Options", group: "Any", code: int, page: "WatchPage | None") -> int:
    from spcomm.trace import writing

    version = sys.modules["spcomm"].__version__
    missing: list[str] = []
    why = writing.write(path, group, options.programs, version, missing.append, code)
    for sentence in missing:
        complain(f"spcomm: warning: {sentence.replace(path, options.trace or path)}")
    if why is None and _is_page(options):
        why = _write_page(path, options.trace or "")
    if why is not None:
        complain(f"spcomm: {why}")
        return code or 125
    if options.virtual and not code:
        complain(_virtual(path))
    if page is not None:
        try:
            page.finish(path, options.trace or "", code)
        except KeyboardInterrupt as error:
            return code or 128 + error.args[0]
    return code


def _is_page(options: "Options") -> bool:
    from spcomm.trace import files

    return options.trace is not None and options.trace.endswith(files.PAGES)


def _write_page(path: str, out: str) -> "str | None":
    """Write the page of the trace in `path`. Returns why that failed."""
    from spcomm.trace import files, page, reader
    from spcomm.trace.errors import TraceError

    try:
        text = page.page(reader.read(path))
        files.replace(out, lambda file: file.write(text))
    except TraceError as error:
        return f"{out} was not written: {error}"
    except OSError as error:
        return f"the page of the trace cannot be written to {out} ({error.strerror or error})"
    return None


def _virtual(path: str) -> str:
    from spcomm.trace import reader, virtual
    from spcomm.trace.errors import TraceError

    try:
        return f"spcomm: {virtual.text(reader.read(path))}".removesuffix("\n")
    except TraceError as error:
        return f"spcomm: {error}"
