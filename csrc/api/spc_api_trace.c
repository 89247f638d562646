/* SPDX-License-Identifier: MIT */
/* Traces the calls of C and C++ programs. Call names are recorded; C programs report no call sites. */
#include "api/spc_api_private.h"

spc_trace_t *spc_api_enter(const spcomm_t *comm, const char *call) {
    spc_trace_t *trace = comm == NULL || comm->core == NULL ? NULL : spc_comm_trace(comm->core);
    if (trace != NULL) {
        spc_comm_trace_call(comm->core, spc_api_call_number(trace, call), 0, 0);
    }
    return trace;
}

void spc_api_leave(spc_trace_t *const *trace) {
    if (*trace != NULL) {
        spc_trace_record(*trace, &(spc_trace_event_t){.kind = SPC_TRACE_RETURN});
    }
}
