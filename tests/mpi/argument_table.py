# SPDX-License-Identifier: MIT
"""A program in C that calls every MPI function with wrong arguments, one at a time.

It is made from csrc/mpi/functions.txt. It prints a line for each call that crashes, and for each one that takes a
handle for good which is none. A second program calls every function, with right arguments, before MPI_Init and after
MPI_Finalize, and prints a line for each one that crashes then, or that does not refuse.
"""

import importlib.util
import re
import sys
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2] / "csrc" / "mpi"

HANDLES = {
    "MPI_Comm": "MPI_COMM_SELF",
    "MPI_Datatype": "MPI_INT",
    "MPI_Op": "MPI_SUM",
    "MPI_Group": "MPI_GROUP_EMPTY",
    "MPI_Info": "MPI_INFO_NULL",
    "MPI_Errhandler": "MPI_ERRORS_RETURN",
    "MPI_Request": "MPI_REQUEST_NULL",
    "MPI_Message": "MPI_MESSAGE_NO_PROC",
    "MPI_Win": "window",
    "MPI_File": "file",
    "MPI_Session": "(MPI_Session)0",
}
LENGTHS = re.compile(
    r"(in|max)?(count|n|ndims|dims|nnodes|argc|index|edges|neighbors|indegree|outdegree|\w*_\w*s)|length"
)
LEFT_OUT = {
    "Abort", "Finalize", "Pcontrol", "Init", "Init_thread",
    "Free_mem",  # any address may be one of its own
    "Intercomm_create", "Intercomm_create_from_groups",  # with leaders that are right they wait for another group
    "Grequest_start",  # its request is done when the program says so
}  # fmt: skip
# A wrong handle is no mistake for them, or the standard lets it pass.
FORGIVING = {
    "Comm_call_errhandler", "Comm_compare", "Type_delete_attr", "Errhandler_free", "Info_free", "Op_free", "Group_free",
    "Comm_create_from_group", "Cancel", "Comm_get_name", "Type_get_name", "Win_get_name", "File_call_errhandler",
    "File_get_errhandler", "File_set_errhandler",
}  # fmt: skip

# They end although this is the only rank.
TO_ITSELF = {"Send", "Bsend", "Rsend", "Isend", "Ibsend", "Irsend", "Irecv", "Iprobe", "Improbe"}

HEAD = r"""
#include <mpi.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static sigjmp_buf again;
static long calls;
static char data[1 << 16], other[1 << 16], text[1 << 15], many[20001];
static int numbers[64], zeros[64], ranges[8][3];
static MPI_Count counts[64];
static MPI_Aint places[64];
static MPI_Datatype types[64];
static MPI_Request requests[64];
static MPI_Status statuses[64];
static MPI_Comm a_comm, freed_comm;
static MPI_Datatype a_type, freed_type;
static MPI_Group a_group, freed_group;
static MPI_Op an_op, freed_op;
static MPI_Info an_info, freed_info;
static MPI_Request a_request, freed_request;
static MPI_Win window, a_window, freed_window;
static MPI_File file, a_file, freed_file;
static MPI_Message a_message, freed_message = (MPI_Message)0x17654321;
static MPI_Errhandler an_errhandler, freed_errhandler = (MPI_Errhandler)0x17654322;
static MPI_Session a_session, freed_session = (MPI_Session)0x17654323;
static int an_int;
static MPI_Count a_count;
static MPI_Aint an_aint;
static MPI_Offset an_offset;
static void *a_pointer;

static void crashed(int number) {
    (void)number;
    siglongjmp(again, 1);
}

static void set_up(void) {
    memset(data, 0, sizeof(data));
    memset(many, 'x', sizeof(many) - 1);
    for (int i = 0; i < 64; i++) {
        numbers[i] = 0;
        counts[i] = 0;
        places[i] = 0;
        types[i] = MPI_INT;
        requests[i] = MPI_REQUEST_NULL;
    }
    memset(ranges, 0, sizeof(ranges));
    memset(statuses, 0, sizeof(statuses));
    strcpy(text, "native");
    a_comm = MPI_COMM_NULL;
    a_type = MPI_INT;
    a_group = MPI_GROUP_EMPTY;
    an_op = MPI_SUM;
    an_info = MPI_INFO_NULL;
    a_request = MPI_REQUEST_NULL;
    a_window = MPI_WIN_NULL;
    a_file = MPI_FILE_NULL;
    a_message = MPI_MESSAGE_NULL;
    an_errhandler = MPI_ERRORS_RETURN;
    an_int = 0;
    a_count = an_aint = an_offset = 0;
    a_pointer = NULL;
}

static void check(const char *what, int code, int must_fail) {
    char words[MPI_MAX_ERROR_STRING] = "";
    int length, error_class = 0;
    calls++;
    if (code == MPI_SUCCESS) {
        if (must_fail) {
            printf("succeeds: %s\n", what);
        }
        return;
    }
    if (MPI_Error_class(code, &error_class) != MPI_SUCCESS || error_class == MPI_SUCCESS
        || MPI_Error_string(code, words, &length) != MPI_SUCCESS || strstr(words, "MPI_") == NULL) {
        printf("no sentence: %s: %d %s\n", what, code, words);
    }
}

/* The calls of one function. */
typedef struct tries {
    int (*call)(int which);
    const char *const *what;
    const char *must_fail;
} tries_t;

static void try_all(const tries_t *tries) {
    for (volatile int which = 0; tries->what[which] != NULL; which++) {
        set_up();
        if (sigsetjmp(again, 1) == 0) {
            check(tries->what[which], tries->call(which), tries->must_fail[which] == '1');
        } else {
            printf("crashes: %s\n", tries->what[which]);
        }
    }
}

static void nothing(void *in, void *out, int *length, MPI_Datatype *type) {
    (void)in, (void)out, (void)length, (void)type;
}
static void nothing_c(void *in, void *out, MPI_Count *length, MPI_Datatype *type) {
    (void)in, (void)out, (void)length, (void)type;
}
static void comm_fails(MPI_Comm *comm, int *code, ...) { (void)comm, (void)code; }
static void win_fails(MPI_Win *win, int *code, ...) { (void)win, (void)code; }
static void file_fails(MPI_File *at, int *code, ...) { (void)at, (void)code; }
"""

MAIN = r"""
int main(int argc, char **argv) {
    const char *path = argc > 1 ? argv[1] : "";
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    set_up();
    MPI_Comm_dup(MPI_COMM_SELF, &a_comm);
    freed_comm = a_comm;
    MPI_Comm_free(&a_comm);
    MPI_Type_contiguous(3, MPI_INT, &a_type);
    freed_type = a_type;
    MPI_Type_free(&a_type);
    MPI_Comm_group(MPI_COMM_SELF, &a_group);
    freed_group = a_group;
    MPI_Group_free(&a_group);
    MPI_Op_create(nothing, 1, &an_op);
    freed_op = an_op;
    MPI_Op_free(&an_op);
    MPI_Info_create(&an_info);
    freed_info = an_info;
    MPI_Info_free(&an_info);
    MPI_Irecv(data, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF, &a_request);
    freed_request = a_request;
    MPI_Wait(&a_request, MPI_STATUS_IGNORE);
    MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_SELF, &a_pointer, &a_window);
    freed_window = a_window;
    MPI_Win_free(&a_window);
    MPI_Win_allocate(sizeof(data), 1, MPI_INFO_NULL, MPI_COMM_SELF, &a_pointer, &window);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
    MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &a_file);
    freed_file = a_file;
    MPI_File_close(&a_file);
    MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    struct sigaction action = {.sa_handler = crashed};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    sigaction(SIGFPE, &action, NULL);
    sigaction(SIGABRT, &action, NULL);
    setvbuf(stdout, NULL, _IOLBF, 0);
"""
TAIL = r"""
    printf("calls %ld\n", calls);
    fflush(stdout);
    _exit(0);
}
"""

ARRAYS = {
    "MPI_Datatype": "types",
    "MPI_Request": "requests",
    "MPI_Status": "statuses",
    "MPI_Aint": "places",
    "MPI_Count": "counts",
    "int": "numbers",
}
POINTED = {
    "int": "&an_int", "MPI_Count": "&a_count", "MPI_Aint": "&an_aint", "MPI_Offset": "&an_offset", "char": "text",
    "MPI_Comm": "&a_comm", "MPI_Datatype": "&a_type", "MPI_Op": "&an_op", "MPI_Group": "&a_group",
    "MPI_Info": "&an_info", "MPI_Errhandler": "&an_errhandler", "MPI_Request": "&a_request",
    "MPI_Message": "&a_message", "MPI_Win": "&a_window", "MPI_File": "&a_file", "MPI_Session": "&a_session",
    "MPI_Status": "statuses",
}  # fmt: skip
FUNCTIONS = {
    "MPI_User_function": "nothing", "MPI_User_function_c": "nothing_c", "MPI_Comm_errhandler_function": "comm_fails",
    "MPI_Win_errhandler_function": "win_fails", "MPI_File_errhandler_function": "file_fails",
}  # fmt: skip
FREED = {
    "MPI_Comm": "freed_comm", "MPI_Datatype": "freed_type", "MPI_Group": "freed_group", "MPI_Op": "freed_op",
    "MPI_Info": "freed_info", "MPI_Request": "freed_request", "MPI_Win": "freed_window", "MPI_File": "freed_file",
    "MPI_Message": "freed_message", "MPI_Errhandler": "freed_errhandler", "MPI_Session": "freed_session",
}  # fmt: skip
MAY_BE_NULL = {"MPI_Info": "MPI_INFO_NULL", "MPI_Request": "MPI_REQUEST_NULL"}


def generator():
    """The module csrc/mpi/generate.py."""
    spec = importlib.util.spec_from_file_location("spc_mpi_generate", SOURCES / "generate.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def values(parameter, kind):
    """Return what is right for a parameter, and (what is wrong, whether it has to fail)."""
    bare = kind.replace("const ", "").strip()
    if "function" in bare:
        right = FUNCTIONS.get(bare.removesuffix(" *"), "NULL")
        return right, [("NULL", right != "NULL")]
    if "[" in bare:
        element = bare.partition("[")[0].strip()
        texts = "text" if parameter.name == "datarep" else "NULL"
        right = "ranges" if parameter.name == "ranges" else texts if "char" in element else ARRAYS[element]
        return right, [("NULL", False)]
    if bare.startswith("char **") or bare == "void *":
        return ("data" if bare == "void *" else "NULL"), [("NULL", False)]
    if bare.endswith("*"):
        pointed = bare.removesuffix("*").strip()
        right = POINTED[pointed]
        wrong = [("NULL", False)]
        if pointed in FREED and "const" not in kind:
            wrong += [
                (f"(*({right}) = {FREED[pointed]}, {right})", False),
                (f"(*({right}) = ({pointed})0x13572468, {right})", False),
            ]
        if bare == "char *":
            wrong += [("many", False), ('""', False)] if "const" in kind else []
        return right, wrong
    if bare in FREED:
        null = MAY_BE_NULL.get(bare, f"{bare.upper()}_NULL")
        wrong = [(FREED[bare], bare != "MPI_Request"), (f"({bare})0x13572468", True), (f"({bare})-77", True)]
        if bare not in MAY_BE_NULL and bare != "MPI_Session":
            wrong.append((null, True))
        return HANDLES[bare], wrong
    numbers = [("-2147483647 - 1", False), ("-99", False)]
    if parameter.name not in ("source", "tag", "recvtag"):  # there it means any
        numbers.append(("-1", False))
    if parameter.is_wide or bare in ("MPI_Count",) or LENGTHS.fullmatch(parameter.name) or bare == "MPI_Aint":
        return "1", numbers  # a large one would be right: nobody knows the size of the program's memory
    right = "MPI_PROC_NULL" if parameter.name in ("dest", "source") else "0"
    return right, [*numbers, ("2147483647", False)]


def blocks(functions, without=LEFT_OUT):
    """Yield for each entry point the lines that call it; the first one has right arguments."""
    for function in functions:
        if (
            function.is_left_out
            or function.is_variadic
            or function.name in without
            or function.result != "int"
        ):
            continue
        for is_large in (False, True)[: 1 + function.has_large]:
            name = f"MPI_{function.name}{'_c' if is_large else ''}"
            found = [values(p, p.large if is_large else p.small) for p in function.parameters]
            rights = [right for right, _ in found]
            if function.name in TO_ITSELF:
                rights = [
                    "0" if p.name in ("dest", "source") else r
                    for p, r in zip(function.parameters, rights, strict=True)
                ]
            lines = [(f"{name}", 0, rights)]
            for index, (_, wrongs) in enumerate(found):
                for wrong, must_fail in wrongs:
                    words = [*rights[:index], wrong, *rights[index + 1 :]]
                    where = f"{name}: {function.parameters[index].name}={wrong}".replace('"', "'")
                    lines.append((where, int(must_fail and function.name not in FORGIVING), words))
            yield function, name, lines


def tries(number, name, lines):
    """The calls of one function in C."""
    cases = "\n".join(
        f"    case {at}: return {name}({', '.join(words)});" for at, (_, _, words) in enumerate(lines)
    )
    texts = ",\n    ".join(f'"{what}"' for what, _, _ in lines)
    must_fail = "".join(str(fail) for _, fail, _ in lines)
    return (
        f"static int call_{number}(int which) {{\n    switch (which) {{\n{cases}\n    }}\n    return 0;\n}}\n"
        f"static const char *const texts_{number}[] = {{\n    {texts}, NULL}};\n"
        f'static const tries_t tries_{number} = {{call_{number}, texts_{number}, "{must_fail}"}};'
    )


def program(functions):
    """Return the text of the program."""
    found = list(blocks(functions))
    texts = [tries(number, name, lines) for number, (_, name, lines) in enumerate(found)]
    calls = "\n".join(f"    try_all(&tries_{number});" for number in range(len(found)))
    return "\n".join([HEAD, *texts, MAIN, calls, TAIL])


# In the first phase they would start MPI; the last two end something.
STARTING = {"Init", "Init_thread", "Session_init", "Abort", "Free_mem"}

OUTSIDE = r"""
static const char *phase;

/* In a process of its own, because errors are fatal before MPI_Init. */
static void try_outside(const tries_t *tries, int is_allowed) {
    char words[4096];
    int ends[2], status;
    pid_t child;
    (void)pipe(ends);
    if ((child = fork()) == 0) {
        dup2(ends[1], 2);
        set_up();
        const int code = tries->call(0);
        if (code != MPI_SUCCESS) {
            int length;
            MPI_Error_string(code, words, &length);
            fprintf(stderr, "%s\n", words);
        }
        _exit(code != MPI_SUCCESS);
    }
    close(ends[1]);
    FILE *answer = fdopen(ends[0], "r");
    words[fread(words, 1, sizeof(words) - 1, answer)] = '\0';
    fclose(answer);
    waitpid(child, &status, 0);
    calls++;
    if (!WIFEXITED(status)) {
        printf("crashes: %s %s\n", phase, tries->what[0]);
    } else if (!is_allowed && (WEXITSTATUS(status) != 1 || strstr(words, phase) == NULL)) {
        printf("succeeds: %s %s: %d %s\n", phase, tries->what[0], WEXITSTATUS(status), words);
    } else if (is_allowed && strstr(words, phase) != NULL) {
        printf("is refused: %s\n", words);
    }
}

static void try_all_outside(const char *says) {
    phase = says;
CALLS
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    try_all_outside("MPI is not started: call MPI_Init first");
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Finalize();
    try_all_outside("MPI has ended: MPI_Finalize was called before");
    printf("calls %ld\n", calls);
    return 0;
}
"""


def program_outside(functions, at_any_time):
    """Return the text of the program that calls them before MPI_Init and after MPI_Finalize."""
    found = list(blocks(functions, STARTING))
    texts = [tries(number, name, lines[:1]) for number, (_, name, lines) in enumerate(found)]
    calls = "\n".join(
        f"    try_outside(&tries_{number}, {int(at_any_time(function.name) is not None)});"
        for number, (function, _, _) in enumerate(found)
    )
    return "\n".join(["#include <sys/wait.h>", HEAD, *texts, OUTSIDE.replace("CALLS", calls)])
