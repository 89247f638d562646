/* SPDX-License-Identifier: MIT */
/*
 * Communicators: rank and size, splitting and duplicating, names. spc_mpi_intercomm.c has what is special to
 * communicators of two groups.
 */
#include "comm/spc_duplicate.h"
#include "mpi/message/spc_mpi_diagnose.h"
#include "mpi/message/spc_mpi_request.h"

/* ---- objects ---- */

static int refuse(MPI_Comm handle) {
    if (spc_mpi.world == NULL) {
        return spc_mpi_fail(NULL, MPI_ERR_OTHER,
                            "this node works alone now: Cluster.map gives it items, and no other nodes to "
                            "communicate with");
    }
    return spc_mpi_fail(NULL, MPI_ERR_COMM, "%s",
                        handle == MPI_COMM_NULL ? "the communicator is MPI_COMM_NULL"
                        : spc_mpi.runs > 1
                            ? "the communicator was freed, or is of an earlier cell: each cell, "
                              "and each call of a Cluster, begins with MPI_COMM_WORLD and "
                              "MPI_COMM_SELF alone"
                            : "the communicator is not a valid handle, or was freed");
}

int spc_mpi_get_any_comm(MPI_Comm handle, spc_mpi_comm_t **comm) {
    *comm = handle == MPI_COMM_WORLD  ? spc_mpi.world
            : handle == MPI_COMM_SELF ? spc_mpi.self
                                      : spc_mpi_handle_find(SPC_MPI_COMM, (intptr_t)handle);
    return __builtin_expect(*comm == NULL, 0) ? refuse(handle) : MPI_SUCCESS;
}

int spc_mpi_get_comm(MPI_Comm handle, spc_mpi_comm_t **comm) {
    SPC_MPI_TRY(spc_mpi_get_any_comm(handle, comm));
    return __builtin_expect((*comm)->core == NULL, 0)
               ? spc_mpi_fail(NULL, MPI_ERR_COMM,
                              "the communicator is not there yet: complete the request of %s first",
                              spc_mpi_call_word("MPI_Comm_idup"))
               : MPI_SUCCESS;
}

int spc_mpi_get_intra(MPI_Comm handle, spc_mpi_comm_t **comm) {
    SPC_MPI_TRY(spc_mpi_get_comm(handle, comm));
    if ((*comm)->remote != NULL) {
        return spc_mpi_fail(*comm, MPI_ERR_COMM,
                            "an intercommunicator cannot do this; MPI_Intercomm_merge makes one "
                            "communicator of both groups");
    }
    return MPI_SUCCESS;
}

spc_mpi_comm_t *spc_mpi_comm_wrap(spc_comm_t *core, const spc_mpi_comm_t *parent) {
    spc_mpi_comm_t *made = calloc(1, sizeof(*made));
    spc_mpi_group_t *group = spc_mpi_group_create((int)spc_comm_size(core));
    if (made == NULL || group == NULL) {
        free(made);
        free(group);
        return NULL;
    }
    made->core = core;
    made->rank = (int)spc_comm_rank(core);
    made->size = group->size;
    made->group = group;
    made->errhandler = parent != NULL ? parent->errhandler : MPI_ERRORS_ARE_FATAL;
    made->info = MPI_INFO_NULL;
    group->rank = made->rank;
    for (int rank = 0; rank < group->size; rank++) {
        group->members[rank] = (int)spc_comm_rank_in_run(core, (uint32_t)rank);
    }
    atomic_init(&made->references, 1);
    made->handle = (MPI_Comm)spc_mpi_handle_create(SPC_MPI_COMM, made);
    if ((intptr_t)made->handle == 0) {
        free(made);
        free(group);
        return NULL;
    }
    return made;
}

int spc_mpi_comm_adopt(spc_comm_t *core, const spc_mpi_comm_t *parent, spc_mpi_comm_t **made) {
    *made = spc_mpi_comm_wrap(core, parent);
    if (*made != NULL) {
        return MPI_SUCCESS;
    }
    spc_mpi_core_close(core);
    return spc_mpi_fail(parent, MPI_ERR_NO_MEM, "there is no memory for a communicator");
}

/* Sends this node's queued messages first: once it has left, nobody here waits for their room. */
void spc_mpi_core_close(spc_comm_t *core) {
    if (core == NULL) {
        return;
    }
    (void)spc_comm_close(core, SPC_NO_DEADLINE);
    spc_comm_destroy(core);
}

/* Relaxed: the caller holds a reference already. */
void spc_mpi_comm_retain(spc_mpi_comm_t *comm) {
    atomic_fetch_add_explicit(&comm->references, 1, memory_order_relaxed);
}

/* Acquire and release pair with the other threads' releases: the last one sees all uses as over. */
void spc_mpi_comm_release(spc_mpi_comm_t *comm) {
    if (atomic_fetch_sub_explicit(&comm->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (comm->local != NULL) {
        spc_mpi_comm_release(comm->local);
    }
    if (comm->info != MPI_INFO_NULL) {
        (void)spc_mpi_info_free(&comm->info);
    }
    spc_mpi_core_close(comm->core);
    spc_mpi_topology_free(comm->topology);
    spc_mpi_channels_free(comm->channels);
    free(comm->group);
    free(comm->remote);
    free(comm);
}

void spc_mpi_comm_discard(spc_mpi_comm_t *comm) {
    spc_mpi_handle_free(SPC_MPI_COMM, (intptr_t)comm->handle);
    spc_mpi_comm_release(comm);
}

/* ---- checks ---- */

int spc_mpi_check_rank(const spc_mpi_comm_t *comm, const char *role, int rank, bool any_is_allowed) {
    const int peers = spc_mpi_peers(comm);
    if ((rank >= 0 && rank < peers) || rank == MPI_PROC_NULL || (any_is_allowed && rank == MPI_ANY_SOURCE)) {
        return MPI_SUCCESS;
    }
    return spc_mpi_fail(comm, MPI_ERR_RANK, "%s=%d: there is no rank %d; this communicator has %d (0 to %d)",
                        role, rank, rank, peers, peers - 1);
}

/* ---- queries ---- */

int spc_mpi_comm_rank(MPI_Comm comm, int *rank) {
    spc_mpi_comm_t *found;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    *rank = found->rank;
    return MPI_SUCCESS;
}

int spc_mpi_comm_size(MPI_Comm comm, int *size) {
    spc_mpi_comm_t *found;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    *size = found->size;
    return MPI_SUCCESS;
}

int spc_mpi_comm_test_inter(MPI_Comm comm, int *flag) {
    spc_mpi_comm_t *found;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    *flag = found->remote != NULL;
    return MPI_SUCCESS;
}

int spc_mpi_comm_group(MPI_Comm comm, MPI_Group *group) {
    spc_mpi_comm_t *found;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    return spc_mpi_group_publish(spc_mpi_group_copy(found->group), group);
}

static int check_remote(const spc_mpi_comm_t *comm) {
    return comm->remote != NULL ? MPI_SUCCESS
                                : spc_mpi_fail(comm, MPI_ERR_COMM, "this communicator has no remote group");
}

int spc_mpi_comm_remote_group(MPI_Comm comm, MPI_Group *group) {
    spc_mpi_comm_t *found;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    SPC_MPI_TRY(check_remote(found));
    return spc_mpi_group_publish(spc_mpi_group_copy(found->remote), group);
}

int spc_mpi_comm_remote_size(MPI_Comm comm, int *size) {
    spc_mpi_comm_t *found;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    SPC_MPI_TRY(check_remote(found));
    *size = found->remote->size;
    return MPI_SUCCESS;
}

int spc_mpi_comm_get_parent(MPI_Comm *parent) {
    *parent = MPI_COMM_NULL;
    return MPI_SUCCESS;
}

int spc_mpi_comm_compare(MPI_Comm comm1, MPI_Comm comm2, int *result) {
    spc_mpi_comm_t *left, *right;
    SPC_MPI_TRY(spc_mpi_get_comm(comm1, &left));
    SPC_MPI_TRY(spc_mpi_get_comm(comm2, &right));
    if ((left->remote != NULL) != (right->remote != NULL)) {
        *result = MPI_UNEQUAL;
        return MPI_SUCCESS;
    }
    int relation = spc_mpi_groups_relate(left->group, right->group);
    if (left->remote != NULL && relation != MPI_UNEQUAL) {
        const int there = spc_mpi_groups_relate(left->remote, right->remote);
        relation = there == MPI_UNEQUAL || relation == MPI_IDENT ? there : relation;
    }
    *result = left == right ? MPI_IDENT : relation == MPI_IDENT ? MPI_CONGRUENT : relation;
    return MPI_SUCCESS;
}

/* ---- names ---- */

int spc_mpi_comm_set_name(MPI_Comm comm, const char *comm_name) {
    spc_mpi_comm_t *found;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    (void)snprintf(found->name, sizeof(found->name), "%s", comm_name);
    return MPI_SUCCESS;
}

int spc_mpi_comm_get_name(MPI_Comm comm, char *comm_name, int *resultlen) {
    spc_mpi_comm_t *found;
    const char *name = "MPI_COMM_NULL";
    if (comm != MPI_COMM_NULL) {
        SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
        name = found->name;
    }
    return spc_mpi_give_text(name, comm_name, resultlen);
}

/* ---- making ---- */

/* Collective; *made is NULL for a node that gives a negative color. */
static int split(spc_mpi_comm_t *comm, int64_t color, int key, spc_mpi_comm_t **made) {
    spc_comm_t *part;
    *made = NULL;
    if (comm->remote != NULL) {
        return spc_mpi_intercomm_split(comm, color, key, made);
    }
    SPC_MPI_TRY(spc_mpi_check(comm, spc_comm_split(comm->core, color, key, SPC_NO_DEADLINE, &part)));
    return part != NULL ? spc_mpi_comm_adopt(part, comm, made) : MPI_SUCCESS;
}

static int split_to(spc_mpi_comm_t *comm, int color, int key, MPI_Comm *newcomm) {
    spc_mpi_comm_t *made;
    *newcomm = MPI_COMM_NULL;
    if (color < 0 && color != MPI_UNDEFINED) {
        return spc_mpi_fail(comm, MPI_ERR_ARG, "color=%d: a color is 0 or more, or MPI_UNDEFINED", color);
    }
    SPC_MPI_TRY(split(comm, color == MPI_UNDEFINED ? -1 : color, key, &made));
    *newcomm = made != NULL ? made->handle : MPI_COMM_NULL;
    return MPI_SUCCESS;
}

int spc_mpi_comm_split(MPI_Comm comm, int color, int key, MPI_Comm *newcomm) {
    spc_mpi_comm_t *found;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    return split_to(found, color, key, newcomm);
}

/* Whether info names memory as the resource to split by; it may name resources that this library does not know. */
static int names_memory(MPI_Info info, bool *named) {
    char value[32] = "";
    int length = (int)sizeof(value), there = 0;
    *named = false;
    if (info != MPI_INFO_NULL) {
        SPC_MPI_TRY(spc_mpi_info_get_string(info, "mpi_hw_resource_type", &length, value, &there));
        *named = there != 0 && strcmp(value, "mpi_shared_memory") == 0;
    }
    return MPI_SUCCESS;
}

/* The color that puts nodes of one resource together. Nodes of a box share memory; no smaller resource is known, since
 * nodes are not bound to hardware. */
static int choose_color(const spc_mpi_comm_t *comm, int split_type, MPI_Info info, int *color) {
    const int box = (int)spc_comm_box(comm->core, spc_comm_rank(comm->core));
    bool named = false;
    *color = MPI_UNDEFINED;
    switch (split_type) {
    case MPI_UNDEFINED:
        return MPI_SUCCESS;
    case MPI_COMM_TYPE_SHARED:
        *color = box;
        return MPI_SUCCESS;
    case MPI_COMM_TYPE_HW_GUIDED:
    case MPI_COMM_TYPE_RESOURCE_GUIDED:
        SPC_MPI_TRY(names_memory(info, &named));
        *color = named ? box : MPI_UNDEFINED;
        return MPI_SUCCESS;
    case MPI_COMM_TYPE_HW_UNGUIDED: /* the standard wants smaller ones, or none */
        *color = spc_comm_is_wide(comm->core) ? box : MPI_UNDEFINED;
        return *color == MPI_UNDEFINED || info == MPI_INFO_NULL
                   ? MPI_SUCCESS
                   : spc_mpi_info_set(info, "mpi_hw_resource_type", "mpi_shared_memory");
    default:
        return spc_mpi_fail(comm, MPI_ERR_ARG,
                            "split_type=%d is none of MPI_COMM_TYPE_SHARED, MPI_COMM_TYPE_HW_GUIDED, "
                            "MPI_COMM_TYPE_HW_UNGUIDED, MPI_COMM_TYPE_RESOURCE_GUIDED and MPI_UNDEFINED",
                            split_type);
    }
}

int spc_mpi_comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm *newcomm) {
    spc_mpi_comm_t *found;
    int color;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    SPC_MPI_TRY(choose_color(found, split_type, info, &color));
    return split_to(found, color, key, newcomm);
}

static int check_subset(const spc_mpi_comm_t *comm, const spc_mpi_group_t *group) {
    for (int rank = 0; rank < group->size; rank++) {
        if (spc_mpi_group_find(comm->group, group->members[rank]) < 0) {
            return spc_mpi_fail(comm, MPI_ERR_GROUP, "rank %d of the group is not in the communicator", rank);
        }
    }
    return MPI_SUCCESS;
}

/* The first member's rank is a color that no other group has. Of two groups, each contributes half of the new
 * communicator. */
int spc_mpi_comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *newcomm) {
    spc_mpi_comm_t *found;
    const spc_mpi_group_t *members;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    SPC_MPI_TRY(spc_mpi_get_group(group, &members));
    SPC_MPI_TRY(check_subset(found, members));
    if (members->rank == MPI_UNDEFINED) {
        return split_to(found, MPI_UNDEFINED, 0, newcomm);
    }
    const int first = found->remote != NULL ? 0 : spc_mpi_group_find(found->group, members->members[0]);
    return split_to(found, first, members->rank, newcomm);
}

/* Only the members take part. */
int spc_mpi_comm_of_group(spc_mpi_comm_t *comm, const spc_mpi_group_t *group, uint32_t tag,
                          spc_mpi_comm_t **made) {
    uint32_t *members = malloc(sizeof(*members) * ((size_t)group->size + 1));
    spc_comm_t *core = NULL;
    *made = NULL;
    if (members == NULL) {
        return spc_mpi_fail(comm, MPI_ERR_NO_MEM, "there is no memory for a list of %d ranks", group->size);
    }
    for (int rank = 0; rank < group->size; rank++) {
        members[rank] = (uint32_t)spc_mpi_group_find(comm->group, group->members[rank]);
    }
    const int status =
        spc_comm_create_group(comm->core, members, (uint32_t)group->size, tag, SPC_NO_DEADLINE, &core);
    free(members);
    SPC_MPI_TRY(spc_mpi_check(comm, status));
    return spc_mpi_comm_adopt(core, comm, made);
}

int spc_mpi_comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *newcomm) {
    spc_mpi_comm_t *found, *made;
    const spc_mpi_group_t *members;
    *newcomm = MPI_COMM_NULL;
    SPC_MPI_TRY(spc_mpi_get_intra(comm, &found));
    SPC_MPI_TRY(spc_mpi_get_group(group, &members));
    SPC_MPI_TRY(check_subset(found, members));
    if (tag < 0) {
        return spc_mpi_fail(found, MPI_ERR_TAG, "tag=%d: a tag is 0 or more", tag);
    }
    if (members->rank == MPI_UNDEFINED) {
        return MPI_SUCCESS;
    }
    SPC_MPI_TRY(spc_mpi_comm_of_group(found, members, (uint32_t)tag % SPC_MPI_GROUP_TAGS, &made));
    *newcomm = made->handle;
    return MPI_SUCCESS;
}

uint32_t spc_mpi_hash_tag(const char *text) {
    uint32_t hash = 2166136261; /* FNV-1a */
    for (; text != NULL && *text != '\0'; text++) {
        hash = (hash ^ (uint8_t)*text) * 16777619;
    }
    return SPC_MPI_GROUP_TAGS + hash % SPC_MPI_GROUP_TAGS;
}

int spc_mpi_comm_create_from_group(MPI_Group group, const char *stringtag, MPI_Info info,
                                   MPI_Errhandler errhandler, MPI_Comm *newcomm) {
    spc_mpi_comm_t *world, *made;
    const spc_mpi_group_t *members;
    *newcomm = MPI_COMM_NULL;
    SPC_MPI_TRY(spc_mpi_get_comm(MPI_COMM_WORLD, &world));
    SPC_MPI_TRY(spc_mpi_get_group(group, &members));
    SPC_MPI_TRY(spc_mpi_check_errhandler(errhandler));
    if (members->rank == MPI_UNDEFINED) {
        return members->size == 0 ? MPI_SUCCESS
                                  : spc_mpi_fail(world, MPI_ERR_GROUP, "this node is not in the group");
    }
    SPC_MPI_TRY(spc_mpi_comm_of_group(world, members, spc_mpi_hash_tag(stringtag), &made));
    made->errhandler = errhandler;
    *newcomm = made->handle;
    return spc_mpi_hints_set(spc_mpi_comm_hints, info, &made->info);
}

/* ---- duplicating ---- */

static int copy_extras(const spc_mpi_comm_t *from, MPI_Info info, spc_mpi_comm_t *to) {
    to->topology = spc_mpi_topology_copy(from->topology);
    SPC_MPI_TRY(spc_mpi_attributes_copy((intptr_t)from->handle, from->attributes, &to->attributes));
    return spc_mpi_hints_set(spc_mpi_comm_hints, info, &to->info);
}

static int duplicate(spc_mpi_comm_t *comm, MPI_Info info, MPI_Comm *newcomm) {
    spc_mpi_comm_t *made;
    *newcomm = MPI_COMM_NULL;
    SPC_MPI_TRY(split(comm, 0, comm->rank, &made));
    const int code = copy_extras(comm, info, made);
    if (code != MPI_SUCCESS) {
        (void)spc_mpi_attributes_free((intptr_t)made->handle, &made->attributes);
        spc_mpi_comm_discard(made);
        return code;
    }
    *newcomm = made->handle;
    return MPI_SUCCESS;
}

int spc_mpi_comm_dup(MPI_Comm comm, MPI_Comm *newcomm) {
    spc_mpi_comm_t *found;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    return duplicate(found, MPI_INFO_NULL, newcomm);
}

int spc_mpi_comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm) {
    spc_mpi_comm_t *found;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    return duplicate(found, info, newcomm);
}

/* ---- duplicates that a request completes ----
 *
 * The communicator has its handle, its groups and copies of the attributes when the call returns, as if it were
 * duplicated then. Its core (comm/spc_duplicate.h) comes when all members have called; the thread that completes the
 * request gives it to the communicator. Before that the handle is refused, except where a program sets the error
 * handler. One of two groups needs a second core, for the local group.
 */

typedef struct kept {
    spc_mpi_comm_t *made; /* NULL once it is the program's, or was discarded */
    spc_duplicate_t *core;
    spc_duplicate_t *local; /* NULL: of one group */
    int copied; /* the code of the copying of its attributes: the others are not to wait for a node where it fails */
    bool is_finished;
    int code; /* with which it was */
} kept_t;

/* Without a core. */
static spc_mpi_comm_t *create_like(const spc_mpi_comm_t *comm) {
    spc_mpi_comm_t *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return NULL;
    }
    made->rank = comm->rank;
    made->size = comm->size;
    made->group = spc_mpi_group_copy(comm->group);
    made->remote = comm->remote != NULL ? spc_mpi_group_copy(comm->remote) : NULL;
    made->local_first = comm->local_first;
    made->remote_first = comm->remote_first;
    made->errhandler = comm->errhandler;
    made->info = MPI_INFO_NULL;
    atomic_init(&made->references, 1);
    const bool has_groups = made->group != NULL && (made->remote != NULL) == (comm->remote != NULL);
    made->handle = has_groups ? (MPI_Comm)spc_mpi_handle_create(SPC_MPI_COMM, made) : (MPI_Comm)0;
    if ((intptr_t)made->handle == 0) {
        spc_mpi_comm_release(made);
        return NULL;
    }
    return made;
}

static void discard(kept_t *kept) {
    spc_mpi_comm_discard(kept->made);
    kept->made = NULL;
}

/* The cores, or none if one of them fails. */
static int make_cores(kept_t *kept, spc_comm_t **core, spc_comm_t **own) {
    int status = spc_duplicate_finish(kept->core, core);
    if (kept->local != NULL) {
        const int other = spc_duplicate_finish(kept->local, own);
        status = status != SPC_OK ? status : other;
    }
    if (status != SPC_OK) {
        spc_mpi_core_close(*core);
        spc_mpi_core_close(*own);
    }
    return status;
}

static int complete(const spc_mpi_comm_t *parent, kept_t *kept) {
    spc_comm_t *core = NULL, *own = NULL;
    SPC_MPI_TRY(spc_mpi_check(parent, make_cores(kept, &core, &own)));
    const int code = own != NULL ? spc_mpi_intercomm_give_local(kept->made, own) : MPI_SUCCESS;
    kept->made->core = core;
    return code != MPI_SUCCESS ? code : kept->copied;
}

static int finish(spc_mpi_request_t *request) {
    kept_t *kept = request->arguments;
    if (kept->is_finished) {
        return kept->code;
    }
    kept->is_finished = true;
    kept->code = complete(request->comm, kept);
    if (kept->code != MPI_SUCCESS) {
        (void)spc_mpi_attributes_free((intptr_t)kept->made->handle, &kept->made->attributes);
        discard(kept);
    }
    kept->made = NULL;
    return kept->code;
}

static void release(spc_mpi_request_t *request) {
    kept_t *kept = request->arguments;
    if (kept->made != NULL) {
        discard(kept);
    }
    spc_duplicate_end(kept->core);
    spc_duplicate_end(kept->local);
}

static int create_request(spc_mpi_comm_t *comm, spc_mpi_request_t **request) {
    SPC_MPI_TRY(spc_mpi_request_create(comm, NULL, sizeof(kept_t), request));
    spc_mpi_comm_t *made = create_like(comm);
    if (made == NULL) {
        spc_mpi_request_destroy(*request);
        return spc_mpi_fail(comm, MPI_ERR_NO_MEM, "there is no memory for a communicator");
    }
    ((kept_t *)(*request)->arguments)->made = made;
    (*request)->release = release;
    (*request)->finish = finish;
    return MPI_SUCCESS;
}

/* Between two groups the members of both begin the first one, and those of each group the second one. */
static int begin(const spc_mpi_comm_t *comm, spc_mpi_request_t *request) {
    kept_t *kept = request->arguments;
    int status = spc_duplicate_begin(comm->core, &kept->core);
    if (status == SPC_OK && comm->local != NULL) {
        status = spc_duplicate_begin(comm->local->core, &kept->local);
    }
    SPC_MPI_TRY(spc_mpi_check(comm, status));
    spc_request_t *first = spc_duplicate_request(kept->core);
    first->next_part = kept->local != NULL ? spc_duplicate_request(kept->local) : NULL;
    spc_request_all(comm->core, first, &request->core);
    request->core.name = spc_mpi_call_word(request->made_by);
    return MPI_SUCCESS;
}

int spc_mpi_comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm, MPI_Request *request) {
    spc_mpi_comm_t *found;
    spc_mpi_request_t *made;
    *newcomm = MPI_COMM_NULL;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    SPC_MPI_TRY(create_request(found, &made));
    kept_t *kept = made->arguments;
    kept->copied = copy_extras(found, info, kept->made);
    const int code = begin(found, made);
    if (code != MPI_SUCCESS) {
        spc_mpi_request_destroy(made);
        return code;
    }
    *newcomm = kept->made->handle;
    *request = made->handle;
    return MPI_SUCCESS;
}

int spc_mpi_comm_idup(MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request) {
    return spc_mpi_comm_idup_with_info(comm, MPI_INFO_NULL, newcomm, request);
}

/* ---- ending ---- */

int spc_mpi_comm_free(MPI_Comm *comm) {
    spc_mpi_comm_t *found;
    SPC_MPI_TRY(spc_mpi_get_comm(*comm, &found));
    if (found == spc_mpi.world || found == spc_mpi.self) {
        return spc_mpi_fail(found, MPI_ERR_COMM, "%s cannot be freed", found->name);
    }
    SPC_MPI_TRY(spc_mpi_attributes_free((intptr_t)*comm, &found->attributes));
    spc_mpi_comm_discard(found);
    *comm = MPI_COMM_NULL;
    return MPI_SUCCESS;
}

int spc_mpi_comm_disconnect(MPI_Comm *comm) {
    return spc_mpi_comm_free(comm);
}

/* ---- bytes for this library's own use ---- */

int spc_mpi_send_bytes(const spc_mpi_comm_t *comm, int destination, int tag, const void *data,
                       uint64_t bytes) {
    const spc_payload_t payload = {.data = data, .data_bytes = bytes, .format = SPC_FORMAT_RAW};
    const int32_t to = destination;
    return spc_mpi_check(
        comm, spc_comm_send_ahead(comm->core, &to, 1, SPC_CONTEXT_INTERNAL, tag, &payload, SPC_NO_DEADLINE));
}

int spc_mpi_recv_bytes(const spc_mpi_comm_t *comm, int source, int tag, void *data, uint64_t bytes) {
    spc_message_t message;
    SPC_MPI_TRY(spc_mpi_check(
        comm, spc_comm_recv(comm->core, SPC_CONTEXT_INTERNAL, source, tag, SPC_NO_DEADLINE, &message)));
    const uint64_t length = spc_message_data_bytes(&message);
    memcpy(data, spc_message_data(&message), length < bytes ? length : bytes);
    spc_message_release(comm->core, &message);
    return MPI_SUCCESS;
}
