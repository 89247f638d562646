/* SPDX-License-Identifier: MIT */
#include "api/spc_api_binding.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/spc_api_private.h"
#include "diagnose/spc_deadlock_report.h"

spc_api_binding_t spc_api_binding;

/* ---- Python, if the process has one: found by name, because programs in C have none ---- */

static void *python_function(const char *name) {
    int (*is_initialized)(void);
    *(void **)&is_initialized = dlsym(RTLD_DEFAULT, "Py_IsInitialized");
    return is_initialized != NULL && is_initialized() != 0 ? dlsym(RTLD_DEFAULT, name) : NULL;
}

static int join_python(int (*run)(const char *)) {
    int (*ensure)(void);
    void (*release)(int);
    *(void **)&ensure = python_function("PyGILState_Ensure");
    *(void **)&release = python_function("PyGILState_Release");
    const int state = ensure();
    const int failed =
        run("from spcomm._core import mpi as _spcomm_mpi; _spcomm_mpi.join(); del _spcomm_mpi");
    release(state);
    return failed == 0 && spc_api_binding.core != NULL ? SPC_OK : SPC_EINVAL;
}

static void end_in_c(void) {
    if (spc_api_binding.at_end != NULL) {
        spc_api_binding.at_end();
    }
}

int spc_api_binding_join(spc_comm_t **core) {
    int (*run)(const char *);
    *(void **)&run = python_function("PyRun_SimpleString");
    if (run != NULL) {
        const int status = join_python(run);
        *core = spc_api_binding.core;
        return status;
    }
    spcomm_t *comm;
    const int status = spcomm_startup(0, 0, 0, NULL, &comm);
    if (status != SPCOMM_OK) {
        fprintf(stderr, "spcomm: %s\n", spcomm_last_error());
        return status;
    }
    comm->at_end = end_in_c;
    *core = comm->core;
    return SPC_OK;
}

int spc_api_binding_leave(void) {
    spcomm_t *root = spcomm_current();
    return spc_api_binding.core == NULL && root != NULL ? spcomm_shutdown(root, SPCOMM_FOREVER) : SPC_OK;
}

/* "MPI_Reduce(op=SUM, root=0) of an array of int32, 4 bytes": the core's text of this node's call with MPI's name. */
static void name_call(spc_comm_t *core, const char *call, char *text, size_t room) {
    spc_signature_t signature;
    uint64_t phase;
    text[0] = '\0';
    if (!spc_comm_mismatch(core, spc_comm_rank(core), &signature, &phase)) {
        return;
    }
    char *words = spc_call_text_collective(&signature);
    const char *arguments = words != NULL ? strchr(words, '(') : NULL;
    (void)snprintf(text, room, "%s%s", call, arguments != NULL ? arguments : "()");
    free(words);
}

/* As the program's root explains it, in this communicator. */
static void explain_in_c(spc_comm_t *core, int status, const char *call, char *text, size_t room) {
    const spcomm_t *root = spcomm_current();
    core = core != NULL ? core : root->core;
    spcomm_t view = {.core = core,
                     .rank = spc_comm_rank(core),
                     .size = spc_comm_size(core),
                     .root = &view,
                     .program = root->program,
                     .asked_for_one = root->asked_for_one};
    if (status == SPC_EMISMATCH) {
        spc_note_t mine = {.line = 0};
        name_call(view.core, call, mine.words, sizeof(mine.words));
        if (spc_api_binding.note_line != NULL) {
            spc_api_binding.note_line(&mine);
        }
        (void)spc_api_fail_collective(&view, status, call, &mine);
    } else {
        (void)spc_api_fail(&view, status, "%s", call);
    }
    const char *sentence = spcomm_last_error();
    const size_t length = strlen(call);
    const bool has_name = strncmp(sentence, call, length) == 0 && sentence[length] == ':';
    (void)snprintf(text, room, "%s", has_name ? sentence + length + 2 : sentence);
}

void spc_api_binding_explain(spc_comm_t *core, int status, const char *call, char *text, size_t room) {
    if (spc_api_binding.explain != NULL && core != NULL) {
        spc_api_binding.explain(core, status, call, text, room);
    } else if (spcomm_current() != NULL) {
        explain_in_c(core, status, call, text, room);
    } else {
        (void)snprintf(text, room, "%s", spc_error_message(status));
    }
}

_Noreturn void spc_api_binding_abort(int exit_code) {
    fflush(NULL);
    _exit(exit_code & 0xff ? exit_code & 0xff : 1);
}

void spc_api_binding_trace(spc_comm_t *core, const char *call) {
    const spcomm_t view = {.core = core};
    (void)spc_api_enter(&view, call);
}
