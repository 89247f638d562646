/* SPDX-License-Identifier: MIT */
#include "api/spc_api_private.h"

/* ---- barriers */

int spcomm_barrier(spcomm_t *comm, int64_t timeout_ns) {
    const spc_signature_t signature = {.operation = SPC_OPERATION_BARRIER};
    SPC_API_RECORD(comm, "spcomm_barrier()");
    int status = spc_api_check(comm, "spcomm_barrier()");
    if (status != SPC_OK) {
        return status;
    }
    status =
        spc_comm_collective(comm->core, &signature, NULL, NULL, 0, NULL, spc_clock_deadline_ns(timeout_ns));
    return spc_api_fail_collective(comm, status, "spcomm_barrier()", NULL);
}

/* ---- fuzzy barriers */

static int refuse_null_fuzzy(const char *call) {
    return spc_api_refuse(SPC_EINVAL, "%s: fuzzy is NULL; it is what spcomm_fuzzy_enter has filled in", call);
}

int spcomm_fuzzy_enter(spcomm_t *comm, spcomm_fuzzy_t *fuzzy) {
    static const char call[] = "spcomm_fuzzy_enter()";
    SPC_API_RECORD(comm, call);
    int status = spc_api_check(comm, call);
    if (status != SPC_OK) {
        return status;
    }
    if (fuzzy == NULL) {
        return refuse_null_fuzzy(call);
    }
    return spc_api_fail(comm, spc_comm_fuzzy_enter(comm->core, &fuzzy->phase), "%s", call);
}

int spcomm_fuzzy_done(spcomm_t *comm, spcomm_fuzzy_t *fuzzy, int *done) {
    static const char call[] = "spcomm_fuzzy_done()";
    SPC_API_RECORD(comm, call);
    int status = spc_api_check(comm, call);
    if (status != SPC_OK) {
        return status;
    }
    if (fuzzy == NULL || done == NULL) {
        return refuse_null_fuzzy(call);
    }
    status = spc_comm_fuzzy_done(comm->core, fuzzy->phase);
    if (status == SPC_OK || status == SPC_EAGAIN) {
        *done = status == SPC_OK;
        return SPC_OK;
    }
    return spc_api_fail(comm, status, "%s", call);
}

int spcomm_fuzzy_wait(spcomm_t *comm, spcomm_fuzzy_t *fuzzy, int64_t timeout_ns) {
    static const char call[] = "spcomm_fuzzy_wait()";
    SPC_API_RECORD(comm, call);
    int status = spc_api_check(comm, call);
    if (status != SPC_OK) {
        return status;
    }
    if (fuzzy == NULL) {
        return refuse_null_fuzzy(call);
    }
    status = spc_comm_fuzzy_wait(comm->core, fuzzy->phase, spc_clock_deadline_ns(timeout_ns));
    return spc_api_fail_collective(comm, status, call, NULL);
}

/* Without a handle there is one at a time, as in the paper: a return value of 1 could not name its barrier. */
int spcomm_enter_fuzzy_barrier(spcomm_t *comm) {
    static const char call[] = "spcomm_enter_fuzzy_barrier()";
    SPC_API_RECORD(comm, call);
    int status = spc_api_check(comm, call);
    if (status != SPC_OK) {
        return status;
    }
    pthread_mutex_lock(&comm->lock);
    bool already = comm->in_fuzzy;
    if (!already) {
        status = spc_comm_fuzzy_enter(comm->core, &comm->fuzzy_phase);
        comm->in_fuzzy = status == SPC_OK;
    }
    pthread_mutex_unlock(&comm->lock);
    if (already) {
        return spc_api_refuse(SPC_ELIMIT,
                              "%s: this node is in a fuzzy barrier already; try to exit until that gives 1, "
                              "or use spcomm_fuzzy_enter, which has up to %d at a time",
                              call, SPC_FUZZY_MAX);
    }
    return spc_api_fail(comm, status, "%s", call);
}

/* With the lock. After a mismatch the barrier is over; one that a lost node keeps from ending stays. */
static int ask_entered(spcomm_t *comm) {
    int status = spc_comm_fuzzy_done(comm->core, comm->fuzzy_phase);
    comm->in_fuzzy = status != SPC_OK && status != SPC_EMISMATCH;
    return status;
}

int spcomm_exit_fuzzy_barrier(spcomm_t *comm, int *done) {
    static const char call[] = "spcomm_exit_fuzzy_barrier()";
    SPC_API_RECORD(comm, call);
    int status = spc_api_check(comm, call);
    if (status != SPC_OK) {
        return status;
    }
    if (done == NULL) {
        return spc_api_refuse(SPC_EINVAL, "%s: done is NULL; it is where 0 or 1 goes", call);
    }
    pthread_mutex_lock(&comm->lock);
    bool any = comm->in_fuzzy;
    status = any ? ask_entered(comm) : SPC_EINVAL;
    pthread_mutex_unlock(&comm->lock);
    if (!any) {
        return spc_api_refuse(
            SPC_EINVAL, "%s: this node is in no fuzzy barrier; enter one first; after a 1 it is over", call);
    }
    if (status == SPC_OK || status == SPC_EAGAIN) {
        *done = status == SPC_OK;
        return SPC_OK;
    }
    return spc_api_fail(comm, status, "%s", call);
}

/* ---- reductions */

/* One value, or the three of spcomm_values_t. */
static int reduce(spcomm_t *comm, const char *name, spc_operator_t operator, uint64_t layout,
                  const spc_field_t *fields, uint8_t field_count, const void *value, int64_t timeout_ns,
                  void *result) {
    const spc_signature_t signature = {
        .operation = SPC_OPERATION_REDUCE,
        .operator = (uint8_t)operator,
        .type = (uint8_t)fields[0].type,
        .field_count = field_count,
        .length_bytes = spc_fields_bytes(fields, field_count),
        .layout = layout,
    };
    unsigned char combined[sizeof(spcomm_values_t)];
    SPC_API_RECORD(comm, name);
    int status = spc_api_check(comm, name);
    if (status != SPC_OK) {
        return status;
    }
    if (value == NULL || result == NULL) {
        return spc_api_refuse(SPC_EINVAL, "%s: %s is NULL", name, value == NULL ? "values" : "result");
    }
    status = spc_comm_collective(comm->core, &signature, fields, value, signature.length_bytes, combined,
                                 spc_clock_deadline_ns(timeout_ns));
    if (status == SPC_OK) {
        memcpy(result, combined, signature.length_bytes);
    }
    return spc_api_fail_collective(comm, status, name, NULL);
}

#define REDUCE_ONE(function, ctype, kind, core_type, operator)                                    \
    int function(spcomm_t *comm, ctype value, int64_t timeout_ns, ctype *result) {                \
        const spc_field_t field = {core_type, 1};                                                 \
        return reduce(comm, #function "()", operator, spc_layout_of_one(kind), &field, 1, &value, \
                      timeout_ns, result);                                                        \
    }

REDUCE_ONE(spcomm_global_min_int64, int64_t, SPC_KIND_INT, SPC_TYPE_INT, SPC_MIN)
REDUCE_ONE(spcomm_global_max_int64, int64_t, SPC_KIND_INT, SPC_TYPE_INT, SPC_MAX)
REDUCE_ONE(spcomm_global_sum_int64, int64_t, SPC_KIND_INT, SPC_TYPE_INT, SPC_SUM)
REDUCE_ONE(spcomm_global_min_double, double, SPC_KIND_FLOAT, SPC_TYPE_FLOAT64, SPC_MIN)
REDUCE_ONE(spcomm_global_max_double, double, SPC_KIND_FLOAT, SPC_TYPE_FLOAT64, SPC_MAX)
REDUCE_ONE(spcomm_global_sum_double, double, SPC_KIND_FLOAT, SPC_TYPE_FLOAT64, SPC_SUM)
REDUCE_ONE(spcomm_global_min_simtime, spcomm_simtime_t, SPC_KIND_SIMTIME, SPC_TYPE_SIMTIME, SPC_MIN)
REDUCE_ONE(spcomm_global_max_simtime, spcomm_simtime_t, SPC_KIND_SIMTIME, SPC_TYPE_SIMTIME, SPC_MAX)
REDUCE_ONE(spcomm_global_sum_simtime, spcomm_simtime_t, SPC_KIND_SIMTIME, SPC_TYPE_SIMTIME, SPC_SUM)

_Static_assert(sizeof(spcomm_values_t) == 40, "the fields follow each other without gaps");

static int reduce_values(spcomm_t *comm, const char *name, spc_operator_t operator,
                         const spcomm_values_t *values, int64_t timeout_ns, spcomm_values_t *result) {
    const spc_field_t fields[] = {{SPC_TYPE_INT, 1}, {SPC_TYPE_FLOAT64, 1}, {SPC_TYPE_SIMTIME, 1}};
    static const uint64_t kinds[] = {3, SPC_KIND_INT, SPC_KIND_FLOAT, SPC_KIND_SIMTIME};
    uint64_t hash = spc_layout_mix(0, SPC_KIND_TUPLE);
    for (uint32_t i = 0; i < 4; i++) {
        hash = spc_layout_mix(hash, kinds[i]);
    }
    return reduce(comm, name, operator, spc_layout_of(SPC_KIND_TUPLE, hash, 0), fields, 3, values, timeout_ns,
                  result);
}

int spcomm_global_min(spcomm_t *comm, const spcomm_values_t *values, int64_t timeout_ns,
                      spcomm_values_t *result) {
    return reduce_values(comm, "spcomm_global_min()", SPC_MIN, values, timeout_ns, result);
}

int spcomm_global_max(spcomm_t *comm, const spcomm_values_t *values, int64_t timeout_ns,
                      spcomm_values_t *result) {
    return reduce_values(comm, "spcomm_global_max()", SPC_MAX, values, timeout_ns, result);
}

int spcomm_global_sum(spcomm_t *comm, const spcomm_values_t *values, int64_t timeout_ns,
                      spcomm_values_t *result) {
    return reduce_values(comm, "spcomm_global_sum()", SPC_SUM, values, timeout_ns, result);
}
