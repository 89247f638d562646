# SPDX-License-Identifier: MIT
"""Manual pages, spcomm(1) and one for each command, made from the texts of `--help`."""

from spcomm.cli import help_of, summaries
from spcomm.command_help import CommandHelp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_ABOUT = (
    "spcomm runs one program in Python, C or C++ as several cooperating processes, its nodes, which send messages, "
    "meet at barriers and combine values. The launcher supervises them: it reports deadlocks, labels output, and "
    "leaves no process behind."
)


def pages() -> "list[str]":
    """Return the names of all pages: of commands, and an empty one for spcomm(1)."""
    return ["", *(name for name in summaries() if help_of(name) is not None)]


def file_name(name: str) -> str:
    """Return the name of a page's file."""
    return f"spcomm-{name}.1" if name else "spcomm.1"


def page(name: str) -> str:
    """Return a page in the language of man(7)."""
    if name:
        summary, found = summaries()[name], help_of(name)
    else:
        summary = "run a program as several cooperating processes"
        found = CommandHelp("spcomm COMMAND [arguments]", _ABOUT, ("Commands:", list(summaries().items())))
    others = [each for each in pages() if each != name]
    return _page(file_name(name).removesuffix(".1"), summary, found, others)  # type: ignore[arg-type]


def _page(title: str, summary: str, found: CommandHelp, others: "Sequence[str]") -> str:
    lines = [f'.TH {title.upper()} 1 "" spcomm "User Commands"']
    lines += [".nh", ".SH NAME", f"{_plain(title)} \\- {_plain(summary)}"]
    lines += [".SH SYNOPSIS", ".nf", *map(_line, found.usage), ".fi"]
    lines += [".SH DESCRIPTION", *_paragraphs(found.about)]
    for heading, rows in found.sections:
        lines.append(f'.SH "{_plain(heading.rstrip(":").upper() or "OPTIONS")}"')
        for label, text in rows:
            lines += [".TP", rf"\fB{_plain(label)}\fR", _line(text)]
    if found.closing:
        lines += [".SH NOTES", *_paragraphs(found.closing)]
    lines.append('.SH "SEE ALSO"')
    names = [file_name(each).removesuffix(".1") for each in others]
    lines.append(", ".join(rf"\fB{_plain(each)}\fR(1)" for each in names))
    return "\n".join(lines) + "\n"


def _paragraphs(text: str) -> "list[str]":
    lines: list[str] = []
    for paragraph in text.strip("\n").split("\n\n"):
        rows = paragraph.splitlines()
        if any(row.startswith(" ") for row in rows):
            lines += [".PP", ".nf", *map(_line, rows), ".fi"]
        else:
            lines += [".PP", *map(_line, rows)]
    return lines[1:]  # a heading begins a paragraph


def _line(text: str) -> str:
    """Return a line of text: one that begins with a dot or a quote would be a request."""
    found = _plain(text)
    return rf"\&{found}" if found.startswith((".", "'")) else found


def _plain(text: str) -> str:
    """Return a text as ASCII: without a locale, man knows no ellipsis."""
    return text.replace("\\", r"\e").replace("-", r"\-").replace("…", "...")
