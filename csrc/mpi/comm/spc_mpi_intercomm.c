/* SPDX-License-Identifier: MIT */
/*
 * Intercommunicators: communicators of two groups, and their collectives.
 *
 * The core is one communicator of both groups, one group's ranks after the other's: the group whose first member has
 * the lower rank in the run comes first. Each group also has a communicator of its own, in which collectives do the
 * group's part. Between the groups they send messages: each group gets what the other one gives.
 */
#include "mpi/comm/spc_mpi_collective.h"

#include "comm/spc_comm.h"

/* ---- making ---- */

static void copy_part(spc_mpi_group_t *part, const spc_mpi_group_t *both, int first) {
    memcpy(part->members, both->members + first, sizeof(int) * (size_t)part->size);
}

/* Divides the core's members into the two groups. */
static int divide(spc_mpi_comm_t *comm, int local_size, bool local_is_first) {
    const int remote_size = comm->size - local_size;
    spc_mpi_group_t *local = spc_mpi_group_create(local_size);
    spc_mpi_group_t *remote = spc_mpi_group_create(remote_size);
    if (local == NULL || remote == NULL) {
        free(local);
        free(remote);
        return spc_mpi_fail(comm, MPI_ERR_NO_MEM, "there is no memory for the groups");
    }
    comm->local_first = local_is_first ? 0 : remote_size;
    comm->remote_first = local_is_first ? local_size : 0;
    copy_part(local, comm->group, comm->local_first);
    copy_part(remote, comm->group, comm->remote_first);
    comm->rank -= comm->local_first;
    comm->size = local_size;
    local->rank = comm->rank;
    free(comm->group);
    comm->group = local;
    comm->remote = remote;
    return MPI_SUCCESS;
}

/* It passes to error handlers the handle that the program has. */
int spc_mpi_intercomm_give_local(spc_mpi_comm_t *comm, spc_comm_t *own) {
    SPC_MPI_TRY(spc_mpi_comm_adopt(own, comm, &comm->local));
    spc_mpi_handle_free(SPC_MPI_COMM, (intptr_t)comm->local->handle);
    comm->local->handle = comm->handle;
    return MPI_SUCCESS;
}

static int make_local(spc_mpi_comm_t *comm) {
    spc_comm_t *own;
    const int64_t color = comm->local_first > 0;
    SPC_MPI_TRY(spc_mpi_check(comm, spc_comm_split(comm->core, color, comm->rank, SPC_NO_DEADLINE, &own)));
    return spc_mpi_intercomm_give_local(comm, own);
}

/* Makes an intercommunicator, which owns this core; after an error the core is closed. Collective. */
static int adopt(spc_comm_t *core, const spc_mpi_comm_t *parent, int local_size, bool local_is_first,
                 spc_mpi_comm_t **made) {
    spc_mpi_comm_t *comm;
    *made = NULL;
    SPC_MPI_TRY(spc_mpi_comm_adopt(core, parent, &comm));
    int code = divide(comm, local_size, local_is_first);
    if (code == MPI_SUCCESS) {
        code = make_local(comm);
    }
    if (code != MPI_SUCCESS) {
        spc_mpi_comm_discard(comm);
        return code;
    }
    *made = comm;
    return MPI_SUCCESS;
}

int spc_mpi_intercomm_split(spc_mpi_comm_t *comm, int64_t color, int key, spc_mpi_comm_t **made) {
    const int64_t side = comm->local_first > 0;
    const int64_t order = side * ((int64_t)1 << 33) + key; /* the first group's members before the second's */
    spc_comm_t *part;
    *made = NULL;
    SPC_MPI_TRY(spc_mpi_check(comm, spc_comm_split(comm->core, color, order, SPC_NO_DEADLINE, &part)));
    if (part == NULL) {
        return MPI_SUCCESS;
    }
    int local_size = 0;
    for (uint32_t rank = 0; rank < spc_comm_size(part); rank++) {
        local_size += spc_mpi_group_find(comm->group, (int)spc_comm_rank_in_run(part, rank)) >= 0;
    }
    if (local_size == (int)spc_comm_size(part)) {
        spc_mpi_core_close(part);
        return MPI_SUCCESS;
    }
    return adopt(part, comm, local_size, side == 0, made);
}

/* ---- leaders ---- */

/* The path from one leader to the other. */
typedef struct bridge {
    spc_mpi_comm_t *comm;
    int remote_leader; /* a rank of its core */
    int tag;
} bridge_t;

/* A leader sends this to the other leader and to its own group: whom they will meet, and where. */
typedef struct greeting {
    int size; /* of the group; 0: its leader failed */
    uint32_t tag;
} greeting_t;

static int swap(const bridge_t *bridge, const void *mine, uint64_t my_bytes, void *theirs,
                uint64_t their_bytes) {
    SPC_MPI_TRY(spc_mpi_send_bytes(bridge->comm, bridge->remote_leader, bridge->tag, mine, my_bytes));
    return spc_mpi_recv_bytes(bridge->comm, bridge->remote_leader, bridge->tag, theirs, their_bytes);
}

/* Every member of the local group calls it; only the leader has a bridge. The caller frees `*remote`. */
static int meet(spc_mpi_comm_t *local, int leader, const bridge_t *bridge, int code, uint32_t *tag,
                spc_mpi_group_t **remote) {
    const bool leads = local->rank == leader;
    greeting_t theirs = {0};
    *remote = NULL;
    if (leads && code == MPI_SUCCESS) {
        const greeting_t mine = {.size = local->size};
        code = swap(bridge, &mine, sizeof(mine), &theirs, sizeof(theirs));
        theirs.tag = SPC_MPI_GROUP_TAGS
                     + ((uint32_t)bridge->tag + bridge->comm->core->number * 40503) % SPC_MPI_GROUP_TAGS;
    }
    SPC_MPI_TRY(spc_mpi_bcast_bytes(local, &theirs, sizeof(theirs), leader));
    SPC_MPI_TRY(code);
    if (theirs.size <= 0) {
        return spc_mpi_fail(local, MPI_ERR_OTHER, "rank %d, the leader of this group, has failed", leader);
    }
    spc_mpi_group_t *group = spc_mpi_group_create(theirs.size);
    if (group == NULL) {
        return spc_mpi_fail(local, MPI_ERR_NO_MEM, "there is no memory for a group of %d", theirs.size);
    }
    const uint64_t bytes = sizeof(int) * (uint64_t)theirs.size;
    if (leads) {
        code =
            swap(bridge, local->group->members, sizeof(int) * (uint64_t)local->size, group->members, bytes);
    }
    if (code == MPI_SUCCESS) {
        code = spc_mpi_bcast_bytes(local, group->members, bytes, leader);
    }
    if (code != MPI_SUCCESS) {
        free(group);
        return code;
    }
    *tag = theirs.tag;
    *remote = group;
    return MPI_SUCCESS;
}

static int check_disjoint(const spc_mpi_comm_t *local, const spc_mpi_group_t *remote) {
    for (int rank = 0; rank < remote->size; rank++) {
        if (spc_mpi_group_find(local->group, remote->members[rank]) >= 0) {
            return spc_mpi_fail(local, MPI_ERR_COMM,
                                "node %d of the run is in both groups; the two groups of an "
                                "intercommunicator have no member in common",
                                remote->members[rank]);
        }
    }
    return MPI_SUCCESS;
}

/* Makes the core of both groups, as a part of the run. */
static int join(spc_mpi_comm_t *local, const spc_mpi_group_t *remote, uint32_t tag, spc_mpi_comm_t **made) {
    const spc_mpi_group_t *mine = local->group;
    const bool is_first = mine->members[0] < remote->members[0];
    const spc_mpi_group_t *first = is_first ? mine : remote, *second = is_first ? remote : mine;
    const uint32_t size = (uint32_t)(mine->size + remote->size);
    uint32_t *members = malloc(sizeof(*members) * size);
    spc_comm_t *core = NULL;
    if (members == NULL) {
        return spc_mpi_fail(local, MPI_ERR_NO_MEM, "there is no memory for a list of %u ranks", size);
    }
    for (int rank = 0; rank < (int)size; rank++) {
        members[rank] =
            (uint32_t)(rank < first->size ? first->members[rank] : second->members[rank - first->size]);
    }
    const int status = spc_comm_create_group(spc_mpi.world->core, members, size, tag, SPC_NO_DEADLINE, &core);
    free(members);
    SPC_MPI_TRY(spc_mpi_check(local, status));
    return adopt(core, local, mine->size, is_first, made);
}

/* `code`: the result of the leader's own checks; the others learn whether it failed. */
static int connect(spc_mpi_comm_t *local, int leader, const bridge_t *bridge, int code,
                   spc_mpi_comm_t **made) {
    spc_mpi_group_t *remote;
    uint32_t tag = 0;
    SPC_MPI_TRY(meet(local, leader, bridge, code, &tag, &remote));
    code = check_disjoint(local, remote);
    if (code == MPI_SUCCESS) {
        code = join(local, remote, tag, made);
    }
    free(remote);
    return code;
}

static int check_leader(const spc_mpi_comm_t *comm, const char *role, int rank, int size) {
    return rank >= 0 && rank < size
               ? MPI_SUCCESS
               : spc_mpi_fail(comm, MPI_ERR_RANK, "%s=%d: there is no rank %d; the group has %d (0 to %d)",
                              role, rank, rank, size, size - 1);
}

static int make_bridge(MPI_Comm peer_comm, int remote_leader, int tag, bridge_t *bridge) {
    SPC_MPI_TRY(spc_mpi_get_comm(peer_comm, &bridge->comm));
    SPC_MPI_TRY(check_leader(bridge->comm, "remote_leader", remote_leader, spc_mpi_peers(bridge->comm)));
    bridge->remote_leader = spc_mpi_to_core(bridge->comm, remote_leader);
    if (bridge->remote_leader == (int)spc_comm_rank(bridge->comm->core)) {
        return spc_mpi_fail(bridge->comm, MPI_ERR_RANK,
                            "remote_leader=%d is this node; the other group has a leader of its own",
                            remote_leader);
    }
    if (tag < 0) {
        return spc_mpi_fail(bridge->comm, MPI_ERR_TAG, "tag=%d: a tag is 0 or more", tag);
    }
    bridge->tag = SPC_MPI_TAGS_INTERCOMM + (tag & ((1 << 26) - 1));
    return MPI_SUCCESS;
}

int spc_mpi_intercomm_create(MPI_Comm local_comm, int local_leader, MPI_Comm peer_comm, int remote_leader,
                             int tag, MPI_Comm *newintercomm) {
    spc_mpi_comm_t *local, *made;
    bridge_t bridge = {0};
    *newintercomm = MPI_COMM_NULL;
    SPC_MPI_TRY(spc_mpi_get_intra(local_comm, &local));
    SPC_MPI_TRY(check_leader(local, "local_leader", local_leader, local->size));
    const int code =
        local->rank == local_leader ? make_bridge(peer_comm, remote_leader, tag, &bridge) : MPI_SUCCESS;
    SPC_MPI_TRY(connect(local, local_leader, &bridge, code, &made));
    *newintercomm = made->handle;
    return MPI_SUCCESS;
}

/* Only the leader's arguments about the remote group count. */
static int find_remote_leader(MPI_Group remote_group, int remote_leader, uint32_t tag, bridge_t *bridge) {
    const spc_mpi_group_t *remote;
    SPC_MPI_TRY(spc_mpi_get_group(remote_group, &remote));
    SPC_MPI_TRY(check_leader(spc_mpi.world, "remote_leader", remote_leader, remote->size));
    return make_bridge(MPI_COMM_WORLD, remote->members[remote_leader], (int)tag, bridge);
}

int spc_mpi_intercomm_create_from_groups(MPI_Group local_group, int local_leader, MPI_Group remote_group,
                                         int remote_leader, const char *stringtag, MPI_Info info,
                                         MPI_Errhandler errhandler, MPI_Comm *newintercomm) {
    spc_mpi_comm_t *world, *local, *made;
    const spc_mpi_group_t *group;
    bridge_t bridge = {0};
    const uint32_t tag = spc_mpi_hash_tag(stringtag);
    *newintercomm = MPI_COMM_NULL;
    SPC_MPI_TRY(spc_mpi_get_comm(MPI_COMM_WORLD, &world));
    SPC_MPI_TRY(spc_mpi_get_group(local_group, &group));
    SPC_MPI_TRY(spc_mpi_check_errhandler(errhandler));
    if (group->rank == MPI_UNDEFINED) {
        return spc_mpi_fail(world, MPI_ERR_GROUP, "this node is not in the local group");
    }
    SPC_MPI_TRY(check_leader(world, "local_leader", local_leader, group->size));
    SPC_MPI_TRY(spc_mpi_comm_of_group(world, group, tag, &local));
    int code = MPI_SUCCESS;
    if (local->rank == local_leader) {
        code = find_remote_leader(remote_group, remote_leader, tag, &bridge);
    }
    code = connect(local, local_leader, &bridge, code, &made);
    spc_mpi_comm_discard(local);
    SPC_MPI_TRY(code);
    made->errhandler = made->local->errhandler = errhandler;
    *newintercomm = made->handle;
    return spc_mpi_hints_set(spc_mpi_comm_hints, info, &made->info);
}

/* ---- merging ---- */

/* The group that gives high=1 comes last; if both give the same, the core's first one comes first. */
int spc_mpi_intercomm_merge(MPI_Comm intercomm, int high, MPI_Comm *newintracomm) {
    spc_mpi_comm_t *found, *made;
    spc_comm_t *both;
    *newintracomm = MPI_COMM_NULL;
    SPC_MPI_TRY(spc_mpi_get_comm(intercomm, &found));
    if (found->remote == NULL) {
        return spc_mpi_fail(found, MPI_ERR_COMM,
                            "this communicator has one group: there is nothing to merge");
    }
    const int64_t key = (high != 0 ? (int64_t)1 << 32 : 0) + spc_comm_rank(found->core);
    SPC_MPI_TRY(spc_mpi_check(found, spc_comm_split(found->core, 0, key, SPC_NO_DEADLINE, &both)));
    SPC_MPI_TRY(spc_mpi_comm_adopt(both, found, &made));
    *newintracomm = made->handle;
    return MPI_SUCCESS;
}

/* ---- collectives: messages between the groups ---- */

#define TAG (SPC_MPI_TAGS + 0x100) /* the same for all calls: messages between two nodes keep their order */

static int give(const spc_mpi_comm_t *comm, int peer, spc_mpi_part_t part) {
    const int32_t to = spc_mpi_to_core(comm, peer);
    spc_mpi_payload_t payload;
    SPC_MPI_TRY(spc_mpi_payload_begin(comm, part.at, part.count, part.type, &payload));
    return spc_mpi_payload_send(comm, &to, 1, TAG, &payload);
}

static int get(const spc_mpi_comm_t *comm, int peer, spc_mpi_part_t part) {
    spc_message_t message;
    SPC_MPI_TRY(
        spc_mpi_check(comm, spc_comm_recv(comm->core, SPC_CONTEXT_INTERNAL, spc_mpi_to_core(comm, peer), TAG,
                                          SPC_NO_DEADLINE, &message)));
    const int code = spc_mpi_take_part(comm, &message, peer, part);
    spc_message_release(comm->core, &message);
    return code;
}

/* ---- collectives that move data ---- */

/* Sends to the root alone, or to all peers. */
static int give_all(const spc_mpi_collective_t *call) {
    const bool is_for_each = call->kind == SPC_MPI_SCATTER || call->kind == SPC_MPI_ALLTOALL;
    if (!call->send.is_used) {
        return MPI_SUCCESS;
    }
    if (call->kind == SPC_MPI_GATHER) {
        return give(call->comm, call->root, spc_mpi_whole(&call->send));
    }
    for (int peer = 0; peer < call->comm->remote->size; peer++) {
        SPC_MPI_TRY(give(call->comm, peer,
                         is_for_each ? spc_mpi_part(&call->send, peer) : spc_mpi_whole(&call->send)));
    }
    return MPI_SUCCESS;
}

/* Receives every message, even if one fails. */
static int get_all(const spc_mpi_collective_t *call) {
    int code = MPI_SUCCESS;
    if (!call->recv.is_used) {
        return MPI_SUCCESS;
    }
    if (call->kind == SPC_MPI_BCAST || call->kind == SPC_MPI_SCATTER) {
        return get(call->comm, call->root, spc_mpi_whole(&call->recv));
    }
    for (int peer = 0; peer < call->comm->remote->size; peer++) {
        const int got = get(call->comm, peer, spc_mpi_part(&call->recv, peer));
        code = code != MPI_SUCCESS ? code : got;
    }
    return code;
}

/* ---- collectives that combine: within each group first, at its rank 0 ---- */

static int combine_locally(const spc_mpi_collective_t *call, spc_mpi_part_t total) {
    const spc_mpi_comm_t *local = call->comm->local;
    spc_mpi_collective_t reduce = *call;
    reduce.kind = SPC_MPI_REDUCE;
    reduce.comm = call->comm->local;
    reduce.root = 0;
    reduce.recv = (spc_mpi_side_t){
        .is_used = local->rank == 0, .buffer = total.at, .count = total.count, .type = call->send.type};
    return spc_mpi_collective_run(&reduce);
}

/* Sends the other group's total, which this group's rank 0 has, to all of this group. */
static int share(const spc_mpi_collective_t *call, spc_mpi_part_t total) {
    spc_mpi_collective_t shared = *call;
    const bool is_scattered = call->kind == SPC_MPI_REDUCE_SCATTER;
    const bool is_first = call->comm->rank == 0;
    shared.kind = is_scattered ? SPC_MPI_SCATTER : SPC_MPI_BCAST;
    shared.comm = call->comm->local;
    shared.root = 0;
    shared.recv.is_used = is_scattered || !is_first;
    shared.recv.is_listed = false;
    if (call->recv.is_listed) {
        shared.recv.count = spc_mpi_count(call->recv.counts, call->comm->rank);
    }
    shared.send = (spc_mpi_side_t){.is_used = is_first,
                                   .buffer = is_scattered ? total.at : call->recv.buffer,
                                   .count = call->recv.count,
                                   .is_listed = call->recv.is_listed,
                                   .counts = call->recv.counts,
                                   .type = call->recv.type};
    if (!call->recv.is_listed || !is_first) {
        return spc_mpi_collective_run(&shared);
    }
    MPI_Count *places = malloc(sizeof(*places) * (size_t)call->comm->size), first = 0;
    if (places == NULL) {
        return spc_mpi_fail(call->comm, MPI_ERR_NO_MEM, "there is no memory for a list of counts");
    }
    for (int rank = 0; rank < call->comm->size; rank++) {
        places[rank] = first;
        first += spc_mpi_count(call->recv.counts, rank);
    }
    shared.send.displacements = (spc_mpi_counts_t){places, true};
    const int code = spc_mpi_collective_run(&shared);
    free(places);
    return code;
}

/* Exchanges the totals of both groups. */
static int exchange(const spc_mpi_collective_t *call, spc_mpi_part_t own, spc_mpi_part_t other) {
    SPC_MPI_TRY(combine_locally(call, own));
    if (call->comm->rank == 0) {
        SPC_MPI_TRY(give(call->comm, 0, own));
        SPC_MPI_TRY(get(call->comm, 0, other));
    }
    return share(call, other);
}

static int combine_both(const spc_mpi_collective_t *call) {
    const MPI_Count count = call->send.count;
    spc_mpi_items_t own = {.memory = NULL}, other = {.memory = NULL};
    int code = spc_mpi_items_create(call->comm, count, call->send.type, &own);
    code = code != MPI_SUCCESS ? code : spc_mpi_items_create(call->comm, count, call->send.type, &other);
    if (code == MPI_SUCCESS) {
        const bool is_scattered = call->kind == SPC_MPI_REDUCE_SCATTER;
        code =
            exchange(call, own.part,
                     is_scattered ? other.part : (spc_mpi_part_t){call->recv.buffer, count, call->recv.type});
    }
    free(own.memory);
    free(other.memory);
    return code;
}

/* Combines for the root, which is in the other group. */
static int combine_for_root(const spc_mpi_collective_t *call) {
    spc_mpi_items_t total = {.memory = NULL};
    if (call->root == MPI_PROC_NULL) {
        return MPI_SUCCESS;
    }
    if (call->root == MPI_ROOT) {
        return get(call->comm, 0, spc_mpi_whole(&call->recv));
    }
    SPC_MPI_TRY(spc_mpi_items_create(call->comm, call->send.count, call->send.type, &total));
    int code = combine_locally(call, total.part);
    if (code == MPI_SUCCESS && call->comm->rank == 0) {
        code = give(call->comm, call->root, total.part);
    }
    free(total.memory);
    return code;
}

int spc_mpi_inter_run(const spc_mpi_collective_t *call) {
    if (call->kind == SPC_MPI_REDUCE) {
        return combine_for_root(call);
    }
    if (call->kind > SPC_MPI_REDUCE) {
        return combine_both(call);
    }
    SPC_MPI_TRY(give_all(call));
    return get_all(call);
}
