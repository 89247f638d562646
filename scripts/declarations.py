# SPDX-License-Identifier: MIT
"""Declare for Cython what the headers of the C core declare.

The compiler's preprocessor and pycparser read them; a name has the type there that it has in C. To read an atomic field
is an atomic load, since C compiles it. Fields of structs that have no name are left out.
"""

import operator
import re
from collections.abc import Iterator

from pycparser import c_ast, c_parser

# Types of the system's headers, which are not read.
SYSTEM_TYPES = {
    "libc.stddef": ["size_t"],
    "libc.stdint": [f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)],
    "libc.stdio": ["FILE"],
    "posix.types": ["pid_t"],
}
# Names that are words of Cython's grammar.
RENAMED = {"operator": "op"}
ARITHMETIC = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.floordiv,
    "<<": operator.lshift,
    "|": operator.or_,
}


class UndeclarableError(Exception):
    """Cython cannot have this, and does not need it."""


def declarations(header: str, preprocessed: str) -> str:
    """Return the text of a .pxd file; `preprocessed` is the header's text after `cc -E -dD`."""
    lines = "".join(f"    {line}\n" for line in _Declarations(preprocessed).lines)
    imports = "".join(f"from {module} cimport {', '.join(names)}\n" for module, names in SYSTEM_TYPES.items())
    return (
        f"# Generated from {header} by scripts/declarations.py.\n{imports}\n"
        f'cdef extern from "<stdbool.h>" nogil:\n    ctypedef bint spc_bool "bool"\n\n'
        f'cdef extern from "{header}" nogil:\n{lines}'
    )


def _own_text(preprocessed: str) -> "tuple[str, list[tuple[str, str]]]":
    """Return the declarations of the headers below csrc, and their constants as (name, text)."""
    lines, constants, is_ours = [], [], False
    for line in preprocessed.splitlines():
        if marker := re.match(r'# \d+ "([^"]*)"', line):
            is_ours = marker[1].startswith("csrc/")
        elif is_ours and (constant := re.match(r"#define (\w+) (.+)", line)):
            constants.append((constant[1], constant[2]))
        elif is_ours and not line.startswith("#"):
            lines.append(line)
    return "\n".join(lines), constants


def _without_bodies(text: str) -> str:
    """Make declarations of inline functions, whose bodies have a compiler's own words."""
    text = re.sub(r'_Static_assert\s*\((?:[^";]|"[^"]*")*;', "", text)
    text = re.sub(r"\b(_Noreturn|static|inline|restrict)\b|__attribute__\s*\(\(.*?\)\)", "", text)
    pieces, start = [], 0
    for opening in re.finditer(r"\)\s*(\{)", text):
        if opening.start() >= start:
            pieces.append(text[start : opening.start(1)] + ";")
            depth, start = 1, opening.end()
            while depth:
                depth += {"{": 1, "}": -1}.get(text[start], 0)
                start += 1
    return "".join([*pieces, text[start:]])


class _Declarations:
    def __init__(self, preprocessed: str) -> None:
        self.lines: list[str] = []
        self._values: dict[str, int] = {"INT32_MAX": (1 << 31) - 1}  # of constants and enumerators
        self._definitions: dict[str, c_ast.Node] = {}  # by tag: a struct with its fields
        self._names: dict[str, str] = {}  # by tag: the name of the type
        self._parser = c_parser.CParser()
        text, constants = _own_text(preprocessed)
        known = [name for names in SYSTEM_TYPES.values() for name in names]
        prelude = "".join(f"typedef int {name};\n" for name in known)
        nodes = self._parser.parse(prelude + _without_bodies(text)).ext[len(known) :]
        for node in nodes:
            structure = node.type if isinstance(node, c_ast.Decl) else getattr(node.type, "type", None)
            if getattr(structure, "decls", None):
                self._definitions[structure.name] = structure
        for node in nodes:
            try:
                self._declare(node)
            except UndeclarableError:
                pass
        for name, value in constants:
            self._declare_constant(name, value)

    def _declare(self, node: c_ast.Node) -> None:
        kind = node.type if isinstance(node.type, c_ast.Enum) else getattr(node.type, "type", None)
        if isinstance(kind, c_ast.Enum) and kind.values:
            is_named = isinstance(node, c_ast.Typedef)
            self._declare_enum(kind, f"ctypedef enum {node.name}:" if is_named else "enum:")
        elif isinstance(node, c_ast.Typedef) and isinstance(kind, (c_ast.Struct, c_ast.Union)):
            self._names[kind.name] = node.name
            fields = list(self._fields(self._definitions.get(kind.name, kind)))
            word = "struct" if isinstance(kind, c_ast.Struct) else "union"
            self.lines += [f"ctypedef {word} {node.name}:", *(f"    {field}" for field in fields or ["pass"])]
        elif isinstance(node, c_ast.Typedef):
            is_function = isinstance(node.type, c_ast.FuncDecl)
            self.lines.append(
                f"ctypedef {self._spell(node.type, node.name)}{' noexcept nogil' if is_function else ''}"
            )
        elif node.name:
            self.lines.append(self._spell(node.type, node.name))

    def _declare_enum(self, node: c_ast.Enum, heading: str) -> None:
        value = -1
        for enumerator in node.values.enumerators:
            value = value + 1 if enumerator.value is None else self._value_of(enumerator.value)
            self._values[enumerator.name] = value
        self.lines += [heading, *(f"    {enumerator.name}" for enumerator in node.values.enumerators)]

    def _declare_constant(self, name: str, text: str) -> None:
        if text.startswith('"'):
            self.lines.append(f"const char *{name}")
        elif "UINT64" in text:
            self.lines.append(f"uint64_t {name}")
        else:
            try:
                parsed = self._parser.parse(f"int value = {text};")
                self._values[name] = self._value_of(parsed.ext[0].init)
            except (UndeclarableError, c_parser.ParseError):
                return  # a list of other names, or a function
            self.lines += ["enum:", f"    {name}"]

    def _value_of(self, node: c_ast.Node) -> int:
        if isinstance(node, c_ast.Constant) and "int" in node.type:
            return int(node.value.rstrip("uUlL"), 0)
        if isinstance(node, c_ast.ID) and node.name in self._values:
            return self._values[node.name]
        if isinstance(node, c_ast.UnaryOp) and node.op == "-":
            return -self._value_of(node.expr)
        if isinstance(node, c_ast.BinaryOp) and node.op in ARITHMETIC:
            return ARITHMETIC[node.op](self._value_of(node.left), self._value_of(node.right))
        raise UndeclarableError

    def _fields(self, node: "c_ast.Struct | c_ast.Union") -> Iterator[str]:
        for field in node.decls or ():
            name = RENAMED.get(field.name, field.name)
            try:
                spelling = self._spell(field.type, name)
            except UndeclarableError:
                continue
            yield spelling if name == field.name else f'{spelling} "{field.name}"'

    def _spell(self, node: c_ast.Node, name: str) -> str:
        """Return the declaration of `name`, which is of this type."""
        if isinstance(node, c_ast.PtrDecl):
            inner = f"*{'const ' if 'const' in node.quals else ''}{name}"
            is_to_function = isinstance(node.type, c_ast.FuncDecl)
            return self._spell(node.type, f"({inner})" if is_to_function else inner)
        if isinstance(node, c_ast.ArrayDecl):
            is_known = name and node.dim is not None
            return self._spell(node.type, f"{name}[{self._value_of(node.dim)}]" if is_known else f"*{name}")
        if isinstance(node, c_ast.FuncDecl):
            called = self._spell(node.type, f"{name}({self._parameters(node)})")
            return f"{called} noexcept nogil" if name.startswith("(") else called
        return f"{'const ' if 'const' in node.quals else ''}{self._name_of(node.type)} {name}".rstrip()

    def _parameters(self, node: c_ast.FuncDecl) -> str:
        spelled = [self._spell(parameter.type, "") for parameter in (node.args.params if node.args else ())]
        return "" if spelled == ["void"] else ", ".join(spelled)

    def _name_of(self, node: c_ast.Node) -> str:
        if isinstance(node, c_ast.IdentifierType):
            return "spc_bool" if node.names == ["_Bool"] else " ".join(node.names)
        if getattr(node, "name", None) in self._names:
            return self._names[node.name]
        raise UndeclarableError
