# SPDX-License-Identifier: MIT
"""Makes, for one ABI, what csrc/mpi needs beside its own sources: generate.py ABI FOLDER; ABI is mpich or standard.

    FOLDER/mpi.h           types, constants and prototypes: for programs, and for csrc/mpi itself
    FOLDER/spc_mpi_list.h  prototypes of the implementations: spc_mpi_send for MPI_Send and MPI_Send_c
    FOLDER/entries.c       the entry points, each under its MPI_ and its PMPI_ name

Everything follows from functions.txt and constants.txt, beside this file.
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ABIS = {"standard": 0, "mpich": 1}  # the column in constants.txt
HANDLES = "Comm Group Datatype Request Op Info Errhandler Message Win File Session".split()
CONVERTED = {"Datatype": "Type"}  # MPI_Type_c2f converts an MPI_Datatype
BANNER = (
    "/* SPDX-License-Identifier: MIT */\n"
    "/* Made by csrc/mpi/generate.py from functions.txt and constants.txt. */\n"
)

STATUS = {
    "standard": "int MPI_SOURCE;\n    int MPI_TAG;\n    int MPI_ERROR;\n    int MPI_internal[5];",
    "mpich": "int count_lo;\n    int count_hi_and_cancelled;\n"
    "    int MPI_SOURCE;\n    int MPI_TAG;\n    int MPI_ERROR;",
}

CALLBACKS = """\
typedef void(MPI_User_function)(void *invec, void *inoutvec, int *len, MPI_Datatype *datatype);
typedef void(MPI_User_function_c)(void *invec, void *inoutvec, MPI_Count *len, MPI_Datatype *datatype);
typedef int(MPI_Grequest_query_function)(void *extra_state, MPI_Status *status);
typedef int(MPI_Grequest_free_function)(void *extra_state);
typedef int(MPI_Grequest_cancel_function)(void *extra_state, int complete);
typedef int(MPI_Copy_function)(MPI_Comm, int, void *, void *, void *, int *);
typedef int(MPI_Delete_function)(MPI_Comm, int, void *, void *);
typedef int(MPI_Comm_copy_attr_function)(MPI_Comm, int, void *, void *, void *, int *);
typedef int(MPI_Comm_delete_attr_function)(MPI_Comm, int, void *, void *);
typedef int(MPI_Type_copy_attr_function)(MPI_Datatype, int, void *, void *, void *, int *);
typedef int(MPI_Type_delete_attr_function)(MPI_Datatype, int, void *, void *);
typedef int(MPI_Win_copy_attr_function)(MPI_Win, int, void *, void *, void *, int *);
typedef int(MPI_Win_delete_attr_function)(MPI_Win, int, void *, void *);
typedef int(MPI_Datarep_extent_function)(MPI_Datatype datatype, MPI_Aint *extent, void *extra_state);
typedef int(MPI_Datarep_conversion_function)(void *, MPI_Datatype, int, void *, MPI_Offset, void *);
typedef int(MPI_Datarep_conversion_function_c)(void *, MPI_Datatype, MPI_Count, void *, MPI_Offset, void *);
typedef void(MPI_Comm_errhandler_function)(MPI_Comm *comm, int *error_code, ...);
typedef void(MPI_File_errhandler_function)(MPI_File *file, int *error_code, ...);
typedef void(MPI_Win_errhandler_function)(MPI_Win *win, int *error_code, ...);
typedef void(MPI_Session_errhandler_function)(MPI_Session *session, int *error_code, ...);
typedef MPI_Comm_errhandler_function MPI_Comm_errhandler_fn;
typedef MPI_File_errhandler_function MPI_File_errhandler_fn;
typedef MPI_Win_errhandler_function MPI_Win_errhandler_fn;
typedef MPI_Session_errhandler_function MPI_Session_errhandler_fn;
"""


@dataclass(frozen=True)
class Parameter:
    """One parameter as functions.txt has it: `const int+ counts[]` has kind `const int+ []`."""

    name: str
    kind: str  # its type without the name

    def c(self, kind=None):
        """C's declaration of it."""
        kind = kind or self.kind
        before, bracket, after = kind.partition("[")
        gap = "" if before.endswith("*") else " "
        return f"{before.rstrip()}{gap}{self.name}{bracket}{after}"

    @property
    def small(self):
        return re.sub(r"[+~]", "", self.kind)

    @property
    def large(self):
        return re.sub(r"\w+\+", "MPI_Count", re.sub(r"\w+~", "MPI_Aint", self.kind))

    @property
    def is_wide(self):
        return self.small != self.large

    @property
    def is_list(self):
        """An array whose elements are wider in the _c form: an accessor hides which it is."""
        return "[" in self.kind and re.search(r"\bint[+~]", self.kind) is not None

    @property
    def inner(self):
        return "spc_mpi_counts_t" if self.is_list else self.large


@dataclass(frozen=True)
class Function:
    name: str
    result: str
    parameters: tuple[Parameter, ...]
    is_left_out: bool

    @property
    def is_variadic(self):
        return any(parameter.kind == "..." for parameter in self.parameters)

    @property
    def has_large(self):
        return any(parameter.is_wide for parameter in self.parameters)

    @property
    def inner(self):
        return f"spc_mpi_{self.name.lower()}"

    def prototype(self, prefix, is_large):
        words = [
            p.kind if p.kind == "..." else p.c(p.large if is_large else p.small) for p in self.parameters
        ]
        return (
            f"{self.result} {prefix}MPI_{self.name}{'_c' if is_large else ''}({', '.join(words) or 'void'})"
        )


def parameter(text):
    if text == "...":
        return Parameter("", "...")
    before, name, brackets = re.fullmatch(r"(.*?)(\w+)((?:\[\d*\])*)", text).groups()
    return Parameter(name, before.rstrip() + (" " + brackets if brackets else ""))


def defined():
    """The names of the implementations that csrc/mpi has: in column 1, or after their type there."""
    texts = (path.read_text() for path in HERE.rglob("*.c"))
    return {
        name
        for text in texts
        for name in re.findall(r"^(?:\w[\w *]*?)?\b(spc_mpi_\w+)\(", text, re.MULTILINE)
    }


def check_defined(function, there):
    """End with a sentence if the list and the sources differ on whether a function is left out."""
    if function.is_variadic or function.is_left_out != (function.inner in there):
        return
    if function.is_left_out:
        sys.exit(f"csrc/mpi/functions.txt: {function.name} is left out (- ), but {function.inner} is defined")
    sys.exit(
        f"csrc/mpi/functions.txt: {function.name} has no implementation: no source in csrc/mpi defines "
        f"{function.inner}(...); define it, or leave the function out (- {function.name})"
    )


def functions():
    there = defined()
    for line in (HERE / "functions.txt").read_text().splitlines():
        match = re.fullmatch(r"(- )?(?:(\w+) )?(\w+)\((.*)\)", line)
        if match:
            left_out, result, name, words = match.groups()
            parameters = tuple(parameter(word) for word in words.split(", ") if word)
            function = Function(name, result or "int", parameters, left_out is not None)
            check_defined(function, there)
            yield function
        elif line and not line.startswith("#"):
            sys.exit(f"csrc/mpi/functions.txt: cannot be read: {line}")


def constants(abi):
    """Yields (type, name, value) of those that this ABI has."""
    kind = None
    for line in (HERE / "constants.txt").read_text().splitlines():
        if line.startswith("["):
            kind = line[1:-1]
        elif line and not line.startswith("#"):
            name, *values = line.split()
            if values[ABIS[abi]] != "-":
                yield kind, name, values[ABIS[abi]]


# ---- mpi.h


def handle_types(abi):
    for name in HANDLES:
        if abi == "standard":
            yield f"typedef struct MPI_ABI_{name} *MPI_{name};"
        else:
            yield "typedef struct ADIOI_FileD *MPI_File;" if name == "File" else f"typedef int MPI_{name};"


def constant_lines(abi):
    for kind, name, value in constants(abi):
        if value == "variable":
            yield f"extern int *const {name};"
        elif kind == "int":
            yield f"#define {name} {f'({value})' if value.startswith('-') else value}"
        else:
            yield f"#define {name} (({kind}){value})"


def conversions():
    """Handles as integers: c2f and f2c for Fortran, toint and fromint of the standard's ABI."""
    for name in HANDLES:
        handle, word = f"MPI_{name}", CONVERTED.get(name, name)
        for to, back in (("c2f", "f2c"), ("toint", "fromint")):
            integer = "MPI_Fint" if to == "c2f" else "int"
            yield integer, f"MPI_{word}_{to}", f"({handle} handle)", "return (int)(intptr_t)handle;"
            yield handle, f"MPI_{word}_{back}", f"({integer} number)", f"return ({handle})(intptr_t)number;"


def header(abi):
    lines = [BANNER, "#ifndef MPI_H", "#define MPI_H", "", "#include <stdint.h>", ""]
    lines += ["#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    lines += ["typedef long MPI_Aint;", "typedef long long MPI_Offset;", "typedef long long MPI_Count;"]
    lines += ["typedef int MPI_Fint;", *handle_types(abi), ""]
    lines += [f"typedef struct MPI_Status {{\n    {STATUS[abi]}\n}} MPI_Status;", "", CALLBACKS]
    if abi == "mpich":
        lines.append("int MPIR_Dup_fn(MPI_Comm, int, void *, void *, void *, int *);\n")
    lines += [*constant_lines(abi), ""]
    for function in functions():
        for is_large in (False, True)[: 1 + function.has_large]:
            lines += [function.prototype(prefix, is_large) + ";" for prefix in ("", "P")]
    lines += [
        f"{result} {prefix}{name}{parameters};"
        for result, name, parameters, _ in conversions()
        for prefix in ("", "P")
    ]
    lines += [
        "",
        HERE_LINES,
        "#ifdef __cplusplus",
        "}",
        "#endif",
        "",
        OLD_NAMES,
        *noting_macros(),
        "#endif",
        "",
    ]
    return "\n".join(lines)


OLD_NAMES = """\
/* Names of MPI-1 that the standard has removed since; programs of older courses use them. */
#define MPI_Address MPI_Get_address
#define MPI_Type_struct MPI_Type_create_struct
#define MPI_Type_hvector MPI_Type_create_hvector
#define MPI_Type_hindexed MPI_Type_create_hindexed
#define MPI_Errhandler_create MPI_Comm_create_errhandler
#define MPI_Errhandler_set MPI_Comm_set_errhandler
#define MPI_Errhandler_get MPI_Comm_get_errhandler
#define MPI_Handler_function MPI_Comm_errhandler_function

static inline int MPI_Type_extent(MPI_Datatype datatype, MPI_Aint *extent) {
    MPI_Aint lb;
    return MPI_Type_get_extent(datatype, &lb, extent);
}

static inline int MPI_Type_lb(MPI_Datatype datatype, MPI_Aint *displacement) {
    MPI_Aint extent;
    return MPI_Type_get_extent(datatype, displacement, &extent);
}

static inline int MPI_Type_ub(MPI_Datatype datatype, MPI_Aint *displacement) {
    MPI_Aint extent;
    const int code = MPI_Type_get_extent(datatype, displacement, &extent);
    *displacement += extent;
    return code;
}
"""

HERE_LINES = """\
/* spcomm mpicc defines SPCOMM_MPI_LINES: each call then notes its line, which reports show. */
typedef struct spcomm_mpi_here {
    const char *file;
    const char *function;
    int line;
} spcomm_mpi_here_t;
#ifdef __cplusplus
extern thread_local spcomm_mpi_here_t spcomm_mpi_here;
#else
extern _Thread_local spcomm_mpi_here_t spcomm_mpi_here;
#endif
"""


def noting_macros():
    """Macros of the functions' own names: a function that is not called, such as &MPI_Send, stays as it is."""
    yield "#ifdef SPCOMM_MPI_LINES"
    yield "#define SPCOMM_MPI_NOTE \\"
    yield "    (spcomm_mpi_here.file = __FILE__, spcomm_mpi_here.line = __LINE__, spcomm_mpi_here.function = __func__)"
    for function in functions():
        if function.result == "int" and not function.is_variadic and not function.is_left_out:
            for name in (function.name, f"{function.name}_c")[: 1 + function.has_large]:
                yield f"#define MPI_{name}(...) (SPCOMM_MPI_NOTE, MPI_{name}(__VA_ARGS__))"
    yield "#endif"


# ---- the entry points


def list_header():
    lines = [BANNER, "#ifndef SPC_MPI_LIST_H", "#define SPC_MPI_LIST_H", ""]
    for function in functions():
        if not function.is_left_out and not function.is_variadic:
            words = [p.c(p.inner) for p in function.parameters]
            lines.append(f"{function.result} {function.inner}({', '.join(words) or 'void'});")
    return "\n".join([*lines, "", "#endif", ""])


def passed(parameter, is_large):
    """(statement before, argument, statement after) for one parameter of an entry point."""
    name = parameter.name
    if parameter.is_list:
        return (
            "",
            f"(spc_mpi_counts_t){{{name}, {'true' if is_wide_list(parameter, is_large) else 'false'}}}",
            "",
        )
    if parameter.is_wide and not is_large and parameter.small == "int *":
        wide = parameter.large.removesuffix(" *")
        before = f"{wide} wide_{name} = *{name};" if name == "position" else f"{wide} wide_{name} = 0;"
        return before, f"&wide_{name}", f"*{name} = spc_mpi_narrow(wide_{name});"
    if parameter.is_wide and not is_large and ("*" in parameter.kind or "[" in parameter.kind):
        return (
            "",
            f"({parameter.large.split(' [')[0].strip()}{' *' if '[' in parameter.kind else ''})(void *){name}",
            "",
        )
    return "", name, ""


def is_wide_list(parameter, is_large):
    return is_large


# Arrays, and the parameters that may be their length.
LENGTHS = {
    **dict.fromkeys(("ranks", "ranks1", "ranks2", "ranges", "degrees"), ("n",)),
    **dict.fromkeys(("dims", "periods", "coords"), ("ndims", "maxdims")),
    **dict.fromkeys(("array_of_requests", "array_of_indices"), ("count", "incount")),
    **dict.fromkeys(("array_of_blocklengths", "array_of_displacements", "array_of_types"), ("count",)),
    **dict.fromkeys(
        ("array_of_gsizes", "array_of_distribs", "array_of_dargs", "array_of_psizes"), ("ndims",)
    ),
    **dict.fromkeys(("array_of_sizes", "array_of_subsizes", "array_of_starts"), ("ndims",)),
    "sources": ("n", "indegree", "maxindegree"),
    "destinations": ("outdegree", "maxoutdegree"),
    "neighbors": ("maxneighbors",),
    "indx": ("nnodes", "maxindex"),
    "edges": ("maxedges",),
    "array_of_partitions": ("length",),
    "array_of_integers": ("max_integers",),
    "array_of_addresses": ("max_addresses",),
    "array_of_large_counts": ("max_large_counts",),
    "array_of_datatypes": ("max_datatypes",),
}
# Texts that a call fills up to the length that the caller gives; 0 asks for the length alone.
FILLED = {"pset_name": "pset_len", "value": "buflen"}
# Pointers that may be NULL, because it means something or nothing is read there.
MAY_BE_NULL = {
    "argc", "argv", "weights", "sourceweights", "destweights", "sendbuf", "recvbuf", "buf", "buffer", "inbuf", "outbuf",
    "base", "location", "origin_addr", "result_addr", "compare_addr", "extra_state", "inoutbuf",
    "array_of_statuses", "free_fn", "cancel_fn", "recvcounts", "sendcounts", "displs", "sdispls", "rdispls",
    "read_conversion_fn", "write_conversion_fn",
}  # fmt: skip
ATTRIBUTE_FUNCTION = re.compile(r"(copy|delete)(_attr)?_fn")


def refused_null(function, parameter):
    """The condition under which NULL for this parameter is a mistake; "" if it never is."""
    name, kind = parameter.name, parameter.small
    lengths = [p.name for p in function.parameters if p.name in LENGTHS.get(name, ())]
    if lengths:
        return f"{name} == NULL && {lengths[0]} > 0"
    if any(p.name == FILLED.get(name) for p in function.parameters):
        return f"{name} == NULL && *{FILLED[name]} > 0"
    is_read = function.name.startswith("Status_") or (name == "status" and kind.startswith("const"))
    if is_read and name == "status":
        return "status == NULL || status == MPI_STATUS_IGNORE"
    if kind == "MPI_Status *" or (function.name == "Init_thread" and name == "provided"):
        return ""
    if name == "datarep":
        return "datarep == NULL"
    if name in MAY_BE_NULL or ATTRIBUTE_FUNCTION.search(name) or "[" in kind or "*" not in kind:
        return ""
    if name == "attribute_val" and ("_set_" in function.name or function.name == "Attr_put"):
        return ""
    return f"{name} == NULL"


def checks(function):
    """Statements that refuse pointers and handles which no implementation could use."""
    for parameter in function.parameters:
        condition = refused_null(function, parameter)
        if condition:
            yield f'SPC_MPI_REFUSE({condition}, "{parameter.name}");'
        if parameter.kind == "MPI_Info" and not function.name.startswith("Info_"):
            yield f"SPC_MPI_CHECK_INFO({parameter.name});"


# Those that the standard allows before MPI_Init and after MPI_Finalize, and two that need no MPI.
AT_ANY_TIME = re.compile(
    r"Init|Init_thread|Initialized|Finalized|Abort|Session_init|Get_version|Get_library_version|Abi_\w+|Info_\w+"
    r"|(Session_(create|call)|Comm_create|Win_create|File_create)_errhandler|Errhandler_free|(Add|Remove)_error_\w+"
    r"|Error_class|Error_string|Get_address|Free_mem"
)


def entry(function, is_large):
    name = f"MPI_{function.name}{'_c' if is_large else ''}"
    prototype = function.prototype("P", is_large)
    if function.is_variadic:
        last = function.parameters[0].name
        body = f"(void){last};\n    return MPI_SUCCESS;"
    elif function.is_left_out:
        unused = "".join(f"(void){p.name};\n    " for p in function.parameters)
        body = f'{unused}return spc_mpi_left_out("{name}");'
    else:
        steps = [passed(parameter, is_large) for parameter in function.parameters]
        if function.has_large and function.parameters[-1].name == "newtype":
            steps.append((f"spc_mpi_call_is_large = {str(is_large).lower()};", "", ""))
        call = f"{function.inner}({', '.join(argument for _, argument, _ in steps if argument)})"
        before = "".join(f"{step}\n    " for step, _, _ in steps if step)
        after = "".join(f"{step}\n    " for _, _, step in steps if step)
        if function.result != "int":
            body = f"return {call};"
        else:
            refusals = "".join(f"{check}\n    " for check in checks(function))
            at_any_time = str(AT_ANY_TIME.fullmatch(function.name) is not None).lower()
            body = (
                f'SPC_MPI_TRY(spc_mpi_enter("MPI_{function.name}", {at_any_time}));\n    {refusals}{before}'
            )
            if after:
                body += f"const int code = {call};\n    {after}return spc_mpi_leave(code);"
            else:
                body += f"return spc_mpi_leave({call});"
    parameters = prototype.partition("(")[2][:-1]
    return f"{prototype} {{\n    {body}\n}}\nSPC_MPI_ALIAS({function.result}, {name}, ({parameters}))\n"


def entries(abi):
    lines = [BANNER, '#include "mpi/spc_mpi.h"', ""]
    for function in functions():
        for is_large in (False, True)[: 1 + function.has_large]:
            lines.append(entry(function, is_large))
    lines += [
        f"{result} P{name}{parameters} {{\n    {body}\n}}\nSPC_MPI_ALIAS({result}, {name}, {parameters})\n"
        for result, name, parameters, body in conversions()
    ]
    if abi == "mpich":
        lines.append("int *const MPI_UNWEIGHTED = (int *)8;\nint *const MPI_WEIGHTS_EMPTY = (int *)16;")
    return "\n".join([*lines, ""])


def main(abi, folder):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (
        ("mpi.h", header(abi)),
        ("spc_mpi_list.h", list_header()),
        ("entries.c", entries(abi)),
    ):
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
