# SPDX-License-Identifier: MIT
"""Completion and help in notebooks: options of `%%spcomm`, commands of `%spcomm`, and names that only nodes have.

`comm` is described by its class. Other names are those of node 0, which is asked while it waits for a cell; it needs a
few milliseconds. The notebook's own names are left to IPython.
"""

import builtins
import html
import inspect
import re
from typing import TYPE_CHECKING

from spcomm.notebook import magic_options

if TYPE_CHECKING:
    from IPython.core.completer import CompletionContext, SimpleMatcherResult
    from IPython.core.interactiveshell import InteractiveShell

    from spcomm.notebook.magics import SpcommMagics

_IDENTIFIER = "spcomm"  # of the matcher
_CELL = re.compile(r"\s*%%spcomm\s(.*)")
_LINE = re.compile(r"(?:\s*[\w, ]+=)?\s*%spcomm\s(.*)")
_DOTTED = re.compile(r"(?<![\w.])[^\W\d][\w.]*$")
_NO_OPTIONS = ("-h", "--help")  # of magics, which have %%spcomm? instead
_LONGEST = 400  # letters of a value


def install(shell: "InteractiveShell", magics: "SpcommMagics") -> None:
    """Let IPython ask this module, too."""
    from IPython.core.completer import context_matcher

    @context_matcher(identifier=_IDENTIFIER)
    def matcher(context: "CompletionContext") -> "SimpleMatcherResult":
        return _matched(context, shell, magics)

    shell.Completer.custom_matchers.append(matcher)
    known = shell.object_inspect_mime

    def object_inspect_mime(name: str, detail_level: int = 0, omit_sections: tuple = ()) -> "dict[str, str]":
        try:
            return known(name, detail_level, omit_sections)
        except KeyError:
            text = described(magics, name)
            if text is None:
                raise
            return {"text/plain": text, "text/html": f"<pre>{html.escape(text)}</pre>"}

    shell.object_inspect_mime = object_inspect_mime  # IPython has no hook for names that it does not know


def remove(shell: "InteractiveShell") -> None:
    """Undo `install`."""
    matchers = shell.Completer.custom_matchers
    matchers[:] = [each for each in matchers if getattr(each, "matcher_identifier", "") != _IDENTIFIER]
    del shell.object_inspect_mime


def _matched(
    context: "CompletionContext", shell: "InteractiveShell", magics: "SpcommMagics"
) -> "SimpleMatcherResult":
    text = context.text_until_cursor
    is_cell = _CELL.match(context.full_text.partition("\n")[0] + " ") is not None
    if is_cell and context.cursor_line > 0:
        return _result(*_names_at(text, magics))
    line = _CELL.match(text) if context.cursor_line == 0 else None
    parser = magic_options.cell_parser
    if line is None:
        line, parser = _LINE.match(text), magic_options.line_parser
    if line is None:
        return _result([], "")
    *before, word = line[1].split(" ")
    before = [each for each in before if each]
    if parser is magic_options.line_parser and word.startswith("-"):
        if before[:1] != ["run"]:
            return _result([], "")
        parser, before = magic_options.cell_parser, before[1:]
    if before[:1] == ["push"]:
        return _result([name for name in shell.user_ns if not name.startswith("_")], word, alone=True)
    if before[:1] == ["pull"]:
        return _result(*_names_at(word, magics), alone=True)
    found = parser().words_at(before, word)
    # A file, such as that of a program, is IPython's to complete.
    words = [] if isinstance(found, str) else [each for each, _text in found if each not in _NO_OPTIONS]
    return _result(words, word, alone=True)


def names_of_nodes(magics: "SpcommMagics | None", owner: str = "") -> "list[str]":
    """Return the names of an owner on node 0, or of its variables; none if there are no nodes."""
    cluster = magics.cluster if magics is not None else None
    found = cluster._ask("names", owner) if cluster is not None else None
    return [each for each in found or [] if isinstance(each, str)]  # type: ignore[union-attr]


def _names_at(text: str, magics: "SpcommMagics") -> "tuple[list[str], str]":
    """Return the names that may end a text, and the letters of it that they replace."""
    found = _DOTTED.search(text)
    if found is None:
        return [], ""
    owner, dot, word = found[0].rpartition(".")
    if owner == "comm":
        return _public(_comm_class()), word
    own = ["comm"] if not dot else []
    return own + names_of_nodes(magics, owner), word


def _result(names: "list[str]", word: str, alone: bool = False) -> "SimpleMatcherResult":
    from IPython.core.completer import SimpleCompletion

    fitting = sorted({name for name in names if name.startswith(word)})
    return {
        "completions": [SimpleCompletion(text=name, type="spcomm") for name in fitting],
        "matched_fragment": word,
        "suppress": alone and bool(fitting),
    }


def described(magics: "SpcommMagics", name: str) -> "str | None":
    """Return the help on a name that the notebook does not know; None: the nodes don't know it either."""
    first, dot, rest = name.partition(".")
    if first == "comm":
        owner = _comm_class()
        if not dot:
            return description(name, owner)
        return description(name, getattr(owner, rest), bound=True) if rest in _public(owner) else None
    if magics.cluster is None or not all(part.isidentifier() for part in name.split(".")):
        return None
    found = magics.cluster._ask("describe", name)
    return found if isinstance(found, str) else None


def _comm_class() -> type:
    from spcomm._core.comm import Comm

    return Comm


def _public(value: object) -> "list[str]":
    return [name for name in dir(value) if not name.startswith("_")]


# On node 0


def names(space: "dict[str, object]", owner: str) -> "list[str]":
    """Return the names of an owner such as `np.random`, without hidden ones; of the space itself if it is empty."""
    if not owner:
        return [name for name in space if not name.startswith("_")]
    try:
        return _public(_value(space, owner))
    except Exception:  # of the program's own methods
        return []


def description_in(space: "dict[str, object]", name: str) -> "str | None":
    """Return the help on a name of this space; None: there is none."""
    try:
        return description(name, _value(space, name)) + "\n(on node 0)"
    except Exception:
        return None


def _value(space: "dict[str, object]", dotted: str) -> object:
    first, *others = dotted.split(".")
    value = space[first] if first in space else vars(builtins)[first]
    for name in others:
        value = getattr(value, name)
    return value


def description(name: str, value: object, bound: bool = False) -> str:
    """Return signature and docstring of a function, type and value of another object.

    `bound`: the value is a method of a class that is shown as one of an object, without its first parameter.
    """
    lines = []
    if callable(value):
        try:
            signature = inspect.signature(value)
        except (TypeError, ValueError):
            signature = None
        if signature is not None:
            shown = list(signature.parameters.values())[bound:]
            lines.append(f"{name}{signature.replace(parameters=shown)}")
    elif not inspect.isdatadescriptor(value):
        text = repr(value)
        lines.append(f"{name}: {type(value).__name__}")
        lines.append(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")
    documented = callable(value) or inspect.ismodule(value) or inspect.isdatadescriptor(value)
    text = inspect.getdoc(value) if documented else None
    return "\n\n".join([*lines, *([text] if text else [])])
