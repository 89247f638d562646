# SPDX-License-Identifier: MIT
"""A public C header as Markdown: its own comments, and what they stand before.

The headers are written for it: the first comment is the contract; `/* ---- title ---- */` begins a section; a comment
speaks of the declarations that follow it up to the next empty line. Bodies of inline functions are left out.
"""

import re
from pathlib import Path

DROPPED = r"#\s*include|#define \w+_(H|HPP)$|_?[Ss]tatic_assert|\s+SPCOMM_NET_(STEP|ASSIGNMENT)\("
ROOT = Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "csrc" / "include"
# Not for those who use it: what other things in the header are made of, and macros of several lines.
PRIVATE = "|".join(
    [
        "namespace spcomm_(detail|net)",
        "#define SPCOMM_NET_(ASSERT|OWN)",
        "typedef (uint64_t __attribute__|int NET)",
        "#undef",
    ]
)


def markdown(name):
    """The page of `spcomm/spcomm.h`, without a title."""
    text = (INCLUDE / name).read_text()
    language = "cpp" if name.endswith("pp") else "c"
    contract = re.search(r"/\*\n(.*?)\*/", text, re.DOTALL)
    out = [prose(contract.group(0)), ""]
    for block in blocks(text[contract.end() :]):
        title = re.match(r"/\* -+ (.*?)(?: -+)?( \*/|\n)", block)
        if title:
            out += [f"## {title.group(1)[0].upper()}{title.group(1)[1:]}", ""]
            block = ("/*" if title.group(2) == "\n" else "") + block[title.end() :]
        comment, code = split(block)
        if re.match(PRIVATE, code) or "\\\n" in code:
            continue
        if code:
            out += [f"```{language}", code, "```", ""]
        if comment:
            out += [prose(comment), ""]
    return "\n".join(out)


def blocks(text):
    """Pieces between empty lines at the top level."""
    pieces, piece, depth = [], [], 0
    for line in one_language(text):
        if not line.strip() and depth == 0:
            pieces.append("\n".join(piece))
            piece = []
            continue
        piece.append(line)
        bare = without_comments(line)
        depth += bare.count("{") - bare.count("}")
    pieces.append("\n".join(piece))
    return [piece for piece in pieces if piece.strip()]


def one_language(text):
    """The lines without what only the preprocessor needs: guards, includes, what is for the other language."""
    kept = []  # of each condition around a line, whether the line is kept
    for line in text.splitlines():
        words = line.replace("#", "# ", 1).split() if line.startswith("#") else []
        if words[1:2] and words[1] in ("if", "ifdef", "ifndef"):
            kept.append("__cplusplus" not in line)
        elif words[1:2] == ["else"]:
            kept[-1] = True
        elif words[1:2] == ["endif"]:
            if kept:
                kept.pop()
        elif all(kept) and not re.match(DROPPED, line):
            yield line


def without_comments(line):
    return re.sub(r"/\*.*?(\*/|$)|//.*", "", line)


def split(block):
    """(the comment that it begins with, the declarations without bodies)"""
    found = re.match(r"\s*(/\*.*?\*/|(?://.*\n)+)", block, re.DOTALL)
    comment = found.group(1) if found else ""
    return comment, declarations(block[found.end() :] if found else block)


def declarations(code):
    """Without the bodies of functions."""
    out, inside = [], 0
    for line in code.strip("\n").splitlines():
        bare = without_comments(line)
        opens = bare.count("{") - bare.count("}")
        if inside:
            inside += opens
            continue
        if opens > 0 and re.search(r"\)( const| noexcept)* \{$", bare.rstrip()):
            inside = opens
            line = without_start(line.rstrip()[:-2] + ";")
        elif opens == 0 and "{" in bare and re.search(r"\)\s*\{.*\}\s*$", bare):
            line = without_start(re.sub(r"\s*\{.*\}\s*$", ";", line))
        out.append(line)
    return "\n".join(out)


def without_start(line):
    """A constructor's initialisers belong to its body."""
    return re.sub(r"\) : \w+_\(.*;$", ");", line)


def prose(comment):
    """The text of a comment as Markdown: what is indented in it is code, names are too."""
    lines = [re.sub(r"^\s*(/\*+|\*/|\*|//)? ?", "", line) for line in comment.splitlines()]
    lines = [re.sub(r"\s*\*/$", "", line) for line in lines]
    out, code = [], False
    for line in lines:
        indented = line.startswith("    ")
        if indented != code and (indented or line.strip()):
            out += ["", "```c"] if indented else ["```", ""]
            code = indented
        out.append(line[4:] if indented else line if code else names(line))
    text = "\n".join([*out, "```"] if code else out).strip("\n")
    return re.sub(r"\n+```\n", "\n```\n", text)


def names(line):
    """Identifiers of the interface in code type, unless they are already."""
    line = re.sub(r"(?<![`\w])((?:spcomm|SPCOMM|SpComm|NET)_\w+(?:\(\))?)(?![`\w])", r"`\1`", line)
    return line.replace("<", "&lt;") if "`" not in line else line
