/* SPDX-License-Identifier: MIT */
#include "comm/spc_comm_perturb.h"

/* What a choice is about: one call makes several. */
enum {
    ABOUT_PACE = 1,
    ABOUT_BEFORE,
    ABOUT_AFTER,
    ABOUT_BLINDNESS,
    ABOUT_LINGERING,
    ABOUT_SOURCE = 256, /* and one more for each source */
};

enum {
    START_NS = 50000000, /* longest delays */
    SLOW_NS = 2000000,
    LONG_NS = 1000000,
    SHORT_NS = 150000,
    BLOCK_CALLS = 32, /* calls of one pace */
    LIVELY_BLOCKS = 32, /* then long runs go on with few delays */
};

typedef enum pace {
    PACE_BRISK, /* no delays: others get out of step with this node */
    PACE_NORMAL,
    PACE_SLOW,
} pace_t;

/* ---- choices */

/* The finaliser of splitmix64. */
static uint64_t mix(uint64_t bits) {
    bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
    return bits ^ (bits >> 31);
}

static uint64_t choose(const spc_comm_t *comm, uint64_t number, uint32_t about) {
    uint64_t bits = mix(comm->config->perturb_seed + UINT64_C(0x9e3779b97f4a7c15));
    bits = mix(bits ^ ((uint64_t)comm->node->rank << 32 | about));
    return mix(bits + number * UINT64_C(0x9e3779b97f4a7c15));
}

static bool is_scheduled(const spc_comm_t *comm) {
    return (comm->config->perturb & SPC_PERTURB_SCHEDULE) != 0;
}

static uint64_t next_number(spc_comm_t *comm) {
    /* Relaxed: nothing follows from it but choices. */
    return atomic_fetch_add_explicit(&comm->node->perturbed_calls, 1, memory_order_relaxed);
}

static pace_t pace_of(const spc_comm_t *comm, uint64_t number) {
    static const pace_t paces[] = {PACE_BRISK, PACE_NORMAL, PACE_NORMAL, PACE_SLOW};
    uint64_t block = number / BLOCK_CALLS;
    uint64_t chosen = choose(comm, block, ABOUT_PACE);
    bool lively = block < LIVELY_BLOCKS || (chosen >> 8) % 8 == 0;
    return lively ? paces[chosen % 4] : PACE_BRISK;
}

/* ---- delays */

static void sleep_ns(const spc_comm_t *comm, uint64_t ns) {
    _Atomic uint32_t nobody_wakes = 0;
    spc_platform_sleep(comm->config->features, &nobody_wakes, 0, ns);
}

static void delay(const spc_comm_t *comm, uint64_t number, uint32_t about) {
    pace_t pace = pace_of(comm, number);
    uint64_t chosen = choose(comm, number, about);
    uint64_t fine = chosen >> 16;
    uint32_t sixteenth = chosen % 16;
    if (pace == PACE_BRISK || sixteenth < (pace == PACE_SLOW ? 4 : 8)) {
        return;
    }
    if (pace == PACE_SLOW) {
        sleep_ns(comm, fine % SLOW_NS);
    } else if (sixteenth < 12) {
        spc_platform_yield();
    } else {
        sleep_ns(comm, fine % (sixteenth < 15 ? SHORT_NS : LONG_NS));
    }
}

void spc_comm_perturb_before(spc_comm_t *comm) {
    if (is_scheduled(comm)) {
        delay(comm, next_number(comm), ABOUT_BEFORE);
    }
}

void spc_comm_perturb_after(spc_comm_t *comm) {
    if (is_scheduled(comm)) {
        delay(comm, next_number(comm), ABOUT_AFTER);
    }
}

bool spc_comm_perturb_blinds(spc_comm_t *comm) {
    return is_scheduled(comm) && choose(comm, next_number(comm), ABOUT_BLINDNESS) % 4 == 0;
}

void spc_comm_perturb_start(spc_comm_t *comm) {
    if (is_scheduled(comm)) {
        uint64_t chosen = choose(comm, next_number(comm), ABOUT_BEFORE);
        sleep_ns(comm, chosen % 4 == 0 ? 0 : (chosen >> 16) % START_NS);
    }
}

/* ---- sending */

static bool goes_to_others(const spc_comm_t *comm, const spc_send_call_t *call) {
    return call->destination_count > 1
           || (call->destination_count == 1 && (uint32_t)call->ranks[0] != comm->rank);
}

/* Waits for the receivers: not for this node itself, and not for those that end. A timeout ends the waiting: the
 * message has been sent, as without rendezvous. */
static int send_by_rendezvous(spc_comm_t *comm, spc_send_call_t *call, uint64_t deadline_ns) {
    int32_t members[SPC_NODES_MAX];
    spc_awaited_t awaited[SPC_NODES_MAX];
    for (uint32_t i = 0; i < call->destination_count; i++) {
        members[i] = (int32_t)spc_comm_member(comm, (uint32_t)call->ranks[i]);
    }
    call->destinations = members;
    spc_synchronous_call_t synchronous = {.send = call, .awaited = awaited, .content = true};
    int status = spc_comm_send_and_wait(comm, &synchronous, deadline_ns);
    return status == SPC_ETIMEDOUT && synchronous.sent ? SPC_OK : status;
}

int spc_comm_perturbed_send(spc_comm_t *comm, spc_send_call_t *call, bool may_wait, uint64_t deadline_ns) {
    uint64_t length = call->payload->meta_bytes + call->payload->data_bytes;
    bool waits = may_wait && (comm->config->perturb & SPC_PERTURB_RENDEZVOUS) != 0
                 && length >= comm->config->rendezvous_bytes && goes_to_others(comm, call);
    spc_comm_perturb_before(comm);
    int status = waits ? send_by_rendezvous(comm, call, deadline_ns) : SPC_ELIMIT;
    if (status == SPC_ELIMIT) { /* or too many were given up: then this one goes without waiting */
        call->destinations = call->ranks;
        status = spc_comm_send_call(comm, call, deadline_ns);
    }
    if (status == SPC_OK) {
        spc_comm_perturb_after(comm);
    }
    return status;
}

/* ---- receiving */

typedef struct shuffled_call {
    spc_recv_call_t recv; /* first: doomed sees nothing else */
    uint64_t number;
} shuffled_call_t;

/* With the lock: of all that have something, the source that this call likes best. */
static int choose_source(spc_comm_t *comm, const shuffled_call_t *call, spc_match_t *match) {
    uint64_t best = 0;
    int status = SPC_EAGAIN;
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        spc_match_t one = call->recv.match;
        one.source = (int32_t)spc_comm_member(comm, rank);
        int32_t source, tag;
        uint64_t length;
        if (spc_inbox_peek(comm->node->inbox, &one, &source, &tag, &length) != SPC_OK) {
            continue;
        }
        uint64_t liking = choose(comm, call->number, ABOUT_SOURCE + rank) | 1;
        if (liking > best) {
            best = liking;
            *match = one;
            status = SPC_OK;
        }
    }
    return status;
}

/* With the lock. */
static int take_shuffled(spc_comm_t *comm, const shuffled_call_t *call) {
    spc_match_t match = call->recv.match;
    int status = SPC_OK;
    if (match.source == SPC_ANY_SOURCE && is_scheduled(comm)) {
        status = choose_source(comm, call, &match);
    }
    status = status == SPC_OK ? spc_inbox_take(comm->node->inbox, &match, call->recv.message) : status;
    spc_outbox_flush(comm->node->outbox);
    return status;
}

static bool test_shuffled(spc_node_wait_t *wait) {
    spc_node_t *node = wait->node;
    pthread_mutex_lock(&node->lock);
    wait->status = take_shuffled(wait->owner, wait->argument);
    spc_node_unlock(node);
    return wait->status != SPC_EAGAIN;
}

/* Something is there to be taken; it stays. */
static bool test_arrived(spc_node_wait_t *wait) {
    spc_node_t *node = wait->node;
    const shuffled_call_t *call = wait->argument;
    int32_t source, tag;
    uint64_t length;
    pthread_mutex_lock(&node->lock);
    wait->status = spc_inbox_peek(node->inbox, &call->recv.match, &source, &tag, &length);
    spc_node_unlock(node);
    return wait->status != SPC_EAGAIN;
}

static void describe_shuffled(const spc_node_wait_t *wait, spc_board_entry_t *entry,
                              spc_board_pair_t *pairs) {
    const shuffled_call_t *call = wait->argument;
    spc_comm_describe_match(wait->owner, &call->recv.match, entry, pairs);
}

static int wait_until(spc_comm_t *comm, bool (*test)(spc_node_wait_t *wait), shuffled_call_t *call,
                      uint64_t deadline_ns) {
    spc_node_wait_t wait = {.node = comm->node,
                            .test = test,
                            .doomed = spc_comm_doomed_by_source,
                            .describe = describe_shuffled,
                            .owner = comm,
                            .argument = call};
    int status = test(&wait) ? SPC_OK : spc_node_wait_for(&wait, deadline_ns);
    return status == SPC_OK ? wait.status : status;
}

/* Once the first has come, waits for others that might be chosen instead. */
static int linger(spc_comm_t *comm, shuffled_call_t *call, uint64_t deadline_ns) {
    uint64_t chosen = choose(comm, call->number, ABOUT_LINGERING);
    bool lively = call->number < LIVELY_BLOCKS * BLOCK_CALLS;
    if (!is_scheduled(comm) || call->recv.match.source != SPC_ANY_SOURCE || chosen % (lively ? 2 : 32) != 0) {
        return SPC_OK;
    }
    int status = wait_until(comm, test_arrived, call, deadline_ns);
    if (status == SPC_OK) {
        sleep_ns(comm, (chosen >> 16) % SLOW_NS);
    }
    return status;
}

int spc_comm_perturbed_recv(spc_comm_t *comm, const spc_recv_call_t *call, uint64_t deadline_ns) {
    spc_comm_perturb_before(comm);
    shuffled_call_t shuffled = {*call, next_number(comm)};
    int status = linger(comm, &shuffled, deadline_ns);
    if (status == SPC_OK) {
        status = wait_until(comm, test_shuffled, &shuffled, deadline_ns);
    }
    if (status == SPC_OK) {
        spc_comm_perturb_after(comm);
    }
    return status;
}

int spc_comm_perturbed_try_recv(spc_comm_t *comm, const spc_recv_call_t *call) {
    shuffled_call_t shuffled = {*call, next_number(comm)};
    if (call->match.source != (int32_t)comm->node->rank && spc_comm_perturb_blinds(comm)) {
        return SPC_EAGAIN;
    }
    if (pthread_mutex_trylock(&comm->node->lock) != 0) {
        return SPC_EAGAIN;
    }
    int status = take_shuffled(comm, &shuffled);
    spc_node_unlock(comm->node);
    return status;
}
