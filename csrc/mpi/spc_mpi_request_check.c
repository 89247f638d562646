/* SPDX-License-Identifier: MIT */
/*
 * Requests that the program never completes, and data of sends that change before their completion.
 */
#include "mpi/spc_mpi_pack.h"
#include "mpi/spc_mpi_request.h"

/* ---- requests that the program never completes ---- */

/* Whether it is a receive that still waits, or another request that the program never completed. */
static bool is_left(spc_mpi_request_t *request) {
    if (!request->is_used || (request->is_persistent && !request->is_active)) {
        return false;
    }
    const bool is_waiting = request->core.kind == SPC_REQUEST_RECEIVE && !spc_request_is_done(&request->core);
    return is_waiting || (!request->is_forgotten && request->query == NULL);
}

static bool are_alike(const spc_mpi_request_t *one, const spc_mpi_request_t *other) {
    return strcmp(one->made_by, other->made_by) == 0 && one->place.line == other->place.line
           && (one->place.file == NULL) == (other->place.file == NULL)
           && (one->place.file == NULL || strcmp(one->place.file, other->place.file) == 0);
}

static void report(spc_mpi_request_t *request, int count) {
    char place[SPC_MPI_PLACE_BYTES], near[SPC_MPI_PLACE_BYTES] = "", what[64];
    const bool waits = request->core.kind == SPC_REQUEST_RECEIVE && !spc_request_is_done(&request->core);
    const bool is_known = request->place.file != NULL || spc_mpi.is_strict;
    if (count == 1) {
        (void)snprintf(what, sizeof(what), "the %s", waits ? "receive" : "request");
    } else {
        (void)snprintf(what, sizeof(what), "%d %ss", count, waits ? "receive" : "request");
    }
    if (waits && request->comm != NULL) {
        spc_mpi_near_text(request->comm, request->peer, request->wanted_tag, near, sizeof(near));
    }
    fprintf(stderr, "spcomm: warning: node %u: %s of %s%s %s%s; complete %s with %s or %s%s\n",
            spc_mpi.node->rank, what, spc_mpi_call_word(request->made_by),
            spc_mpi_place_text(&request->place, place),
            waits        ? "got no message"
            : count == 1 ? "was never completed"
                         : "were never completed",
            near, count == 1 ? "it" : "them", spc_mpi_call_word("MPI_Wait"), spc_mpi_call_word("MPI_Test"),
            is_known ? "" : " (--strict shows the line)");
}

/* A receive that was never completed may be into a function's variable, and the function may have returned. */
static void leave_buffers_alone(void) {
    for (spc_mpi_request_t *request = spc_mpi_requests_all(); request != NULL; request = request->next_made) {
        if (request->is_used && request->core.kind == SPC_REQUEST_RECEIVE && !request->is_forgotten
            && !spc_request_is_done(&request->core)) {
            request->count = 0;
            spc_request_forget_sink(&request->core);
        }
        if (request->is_used && request->core.kind == SPC_REQUEST_ALL) {
            spc_request_end(&request->core);
        }
    }
}

/* Messages that have come in the meantime count. */
void spc_mpi_requests_report(void) {
    if (spc_mpi.world == NULL) {
        return; /* it has left its run */
    }
    leave_buffers_alone();
    spc_request_progress(spc_mpi.node);
    for (spc_mpi_request_t *request = spc_mpi_requests_all(); request != NULL; request = request->next_made) {
        if (!is_left(request) || request->is_reported) {
            continue;
        }
        const bool waits = request->core.kind == SPC_REQUEST_RECEIVE && !spc_request_is_done(&request->core);
        int count = 0;
        for (spc_mpi_request_t *other = request; other != NULL; other = other->next_made) {
            const bool other_waits =
                other->core.kind == SPC_REQUEST_RECEIVE && !spc_request_is_done(&other->core);
            if (is_left(other) && other_waits == waits && are_alike(request, other)) {
                other->is_reported = true;
                count++;
            }
        }
        report(request, count);
    }
}

/* ---- data that must not change: with --strict ---- */

typedef struct sum {
    const char *buffer;
    uint64_t value;
} sum_t;

/* spc_mpi_take_run_t: FNV-1a, over words where there are any. */
static int add_run(void *argument, MPI_Count at, MPI_Count bytes) {
    sum_t *sum = argument;
    const char *from = sum->buffer + at;
    for (; bytes >= 8; bytes -= 8, from += 8) {
        uint64_t word;
        memcpy(&word, from, sizeof(word));
        sum->value = (sum->value ^ word) * UINT64_C(0x100000001b3);
        sum->value ^= sum->value >> 32;
    }
    for (; bytes > 0; bytes--, from++) {
        sum->value = (sum->value ^ (unsigned char)*from) * UINT64_C(0x100000001b3);
    }
    return MPI_SUCCESS;
}

static uint64_t sum_of(const spc_mpi_request_t *request) {
    sum_t sum = {.buffer = request->buffer, .value = UINT64_C(0xcbf29ce484222325)};
    (void)spc_mpi_type_walk(request->type, 0, request->count * request->type->size, add_run, &sum);
    return sum.value;
}

void spc_mpi_request_seal(spc_mpi_request_t *request, const void *buffer, MPI_Count count) {
    request->buffer = (void *)(uintptr_t)buffer;
    request->count = count;
    request->is_sealed = count > 0;
    request->seal = request->is_sealed ? sum_of(request) : 0;
}

int spc_mpi_request_check_seal(const spc_mpi_request_t *request) {
    char place[SPC_MPI_PLACE_BYTES];
    return !request->is_sealed || sum_of(request) == request->seal
               ? MPI_SUCCESS
               : spc_mpi_fail(request->comm, MPI_ERR_BUFFER,
                              "the data of the %s%s have changed before this call; the buffer is the "
                              "program's again only after it",
                              spc_mpi_call_word(request->made_by),
                              spc_mpi_place_text(&request->place, place));
}
