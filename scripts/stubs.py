# SPDX-License-Identifier: MIT
"""Write the stub of an extension module, for type checkers and editors, from its .pyx file.

Annotations are copied. Parameters with a C type need none, nor do module constants in capitals that are ints. A special
method is in the stub if its return type is annotated. Imports, type variables and aliases that only the stub needs are
in the .pyx file under `if False:`, which Cython drops; `Any` and `Self` need no import.
"""

import ast
import re
import textwrap
from collections.abc import Iterator
from typing import Any

from Cython.Compiler.AutoDocTransforms import AnnotationWriter
from Cython.Compiler.TreeFragment import parse_from_strings

IMPORT = re.compile(r"^(?:from [\w.]+ c?import (?:\([^)]*\)|[^(\n]+)|import .+)$", re.MULTILINE)
STUB_ONLY = re.compile(r"^if False:.*\n((?: {4}.*\n|\n)+)", re.MULTILINE)
ALWAYS = "from typing import Any, Self, final\nfrom typing_extensions import disjoint_base\n"
INTEGER = re.compile(r"u?int\d+_t|s?size_t|Py_ssize_t|int|long")
PYTHON_TYPES = {"bint": "bool", "double": "float"}


def stub(module: str, source: str) -> str:
    """Return the text of a .pyi file."""
    statements = _statements(parse_from_strings(module, source).body)
    imports = [re.sub(r"\bcimport\b", "import", statement) for statement in IMPORT.findall(source)]
    stub_only = textwrap.dedent("".join(STUB_ONLY.findall(source)))
    nodes = ast.parse(ALWAYS + "\n".join([*imports, stub_only])).body
    declared = [ast.unparse(node) for node in nodes if isinstance(node, (ast.Assign, ast.ClassDef))]
    body = "\n".join([*declared, *statements, ""])
    used = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
    lines = ["# SPDX-License-Identifier: MIT", f"# Generated from {module}.pyx by scripts/stubs.py."]
    for node in nodes:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            node.names = [name for name in node.names if (name.asname or name.name) in used]
            lines += [ast.unparse(node)] if node.names else []
    return "\n".join([*lines, "", body])


def _statements(block: Any, indent: str = "") -> Iterator[str]:
    for node in getattr(block, "stats", [block]):
        kind = type(node).__name__
        if kind == "StatListNode":
            yield from _statements(node, indent)
        elif kind in ("CClassDefNode", "PyClassDefNode"):
            yield from _class(node)
        elif kind == "DefNode":
            yield from _def(node, indent)
        elif kind == "CFuncDefNode" and node.overridable:  # cpdef
            result = _python_type(node.base_type).replace("object", "Any")
            yield from _function(node, node.declarator.base.name, node.declarator.args, result, indent)
        elif kind == "CVarDefNode" and node.visibility in ("public", "readonly"):
            for declarator in node.declarators:
                yield f"{indent}{declarator.name}: {_python_type(node.base_type)}"
        elif kind in ("SingleAssignmentNode", "ExprStatNode"):
            yield from _variables(node.expr if kind == "ExprStatNode" else node.lhs, indent)


def _variables(target: Any, indent: str) -> Iterator[str]:
    for name in getattr(target, "args", [target]):
        if getattr(name, "annotation", None):
            ignored = "  # type: ignore[assignment]" if name.name == "__hash__" else ""
            yield f"{indent}{name.name}: {name.annotation.string.value}{ignored}"
        elif getattr(name, "name", "").isupper():
            yield f"{indent}{name.name}: int"


def _class(node: Any) -> Iterator[str]:
    is_extension = type(node).__name__ == "CClassDefNode"
    name = node.class_name if is_extension else node.name
    if name.startswith("_"):
        return
    if is_extension:
        decorators = [_written(decorator.decorator) for decorator in node.decorators or ()]
        yield "@final" if "cython.final" in decorators else "@disjoint_base"
    bases = ", ".join(_written(base) for base in (node.bases.args if node.bases else ()))
    yield f"class {name}({bases}):" if bases else f"class {name}:"
    statements = list(_statements(node.body, "    "))
    if node.doc or not statements:
        yield _docstring(node.doc, "    ")
    yield from statements


def _def(node: Any, indent: str) -> Iterator[str]:
    name = node.name
    result = node.return_type_annotation.string.value if node.return_type_annotation else ""
    if name == "__cinit__" and len(node.args) > 1:
        name, result, node.args[0].declarator.name = "__new__", "Self", "cls"
    if name == "__init__" and not result:  # the signature of the type's slot
        yield f"{indent}def __init__(self, *args: Any, **kwargs: Any) -> None: ..."
    elif name == "__richcmp__":
        for comparison in ("eq", "ne", "lt", "le", "gt", "ge"):
            other = "object" if comparison in ("eq", "ne") else node.args[1].annotation.string.value
            yield f"{indent}def __{comparison}__(self, other: {other}, /) -> {result}: ..."
    elif result or not name.startswith("_"):
        yield from (f"{indent}@{decorator.decorator.name}" for decorator in node.decorators or ())
        yield from _function(node, name, node.args, result, indent)


def _function(node: Any, name: str, args: Any, result: str, indent: str) -> Iterator[str]:
    words = [_parameter(arg) for arg in args]
    if type(node).__name__ == "DefNode":
        if node.star_arg or node.num_kwonly_args:
            at = len(words) - node.num_kwonly_args
            words.insert(at, f"*{_annotated(node.star_arg)}" if node.star_arg else "*")
        if node.num_posonly_args:
            words.insert(node.num_posonly_args, "/")
        if node.starstar_arg:
            words.append(f"**{_annotated(node.starstar_arg)}")
    yield f"{indent}def {name}({', '.join(words)}){f' -> {result}' if result else ''}:"
    yield _docstring(node.doc, indent + "    ")


def _docstring(text: "str | None", indent: str) -> str:
    escaped = (text or "").replace("\\", "\\\\").replace('"""', '\\"""')
    return f'{indent}"""{escaped}"""' if text else f"{indent}..."


def _annotated(arg: Any) -> str:
    name = arg.declarator.name if hasattr(arg, "declarator") else arg.name
    return f"{name}: {arg.annotation.string.value}" if arg.annotation else name


def _parameter(arg: Any) -> str:
    words = _annotated(arg)
    default = _written(arg.default) if arg.default else ""
    if arg.base_type.name:
        words += f": {_python_type(arg.base_type)}"
        words += " | None" if default == "None" and arg.base_type.name != "object" else ""
    try:
        ast.literal_eval(default or "0")
    except (SyntaxError, ValueError):
        default = "..."
    return f"{words} = {default}" if default else words


def _written(expression: Any) -> str:
    return AnnotationWriter().write(expression)


def _python_type(c_type: Any) -> str:
    return "int" if INTEGER.fullmatch(c_type.name) else PYTHON_TYPES.get(c_type.name, c_type.name)
