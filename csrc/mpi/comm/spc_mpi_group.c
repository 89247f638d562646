/* SPDX-License-Identifier: MIT */
/*
 * Groups: lists of ranks of the run. A group never changes after it is published.
 */
#include "mpi/spc_mpi.h"

static const spc_mpi_group_t empty = {.handle = MPI_GROUP_EMPTY, .rank = MPI_UNDEFINED};

spc_mpi_group_t *spc_mpi_group_create(int size) {
    spc_mpi_group_t *group = calloc(1, sizeof(*group) + sizeof(int) * (size_t)size);
    if (group != NULL) {
        group->size = size;
        group->rank = MPI_UNDEFINED;
    }
    return group;
}

spc_mpi_group_t *spc_mpi_group_copy(const spc_mpi_group_t *from) {
    spc_mpi_group_t *made = spc_mpi_group_create(from->size);
    if (made != NULL) {
        made->rank = from->rank;
        memcpy(made->members, from->members, sizeof(int) * (size_t)from->size);
    }
    return made;
}

int spc_mpi_group_publish(spc_mpi_group_t *group, MPI_Group *handle) {
    const int me = (int)spc_mpi.node->rank;
    *handle = MPI_GROUP_EMPTY;
    if (group == NULL) {
        return spc_mpi_fail(NULL, MPI_ERR_NO_MEM, "there is no memory for a group");
    }
    if (group->size == 0) {
        free(group);
        return MPI_SUCCESS;
    }
    const int rank = spc_mpi_group_find(group, me);
    group->rank = rank < 0 ? MPI_UNDEFINED : rank;
    group->handle = (MPI_Group)spc_mpi_handle_create(SPC_MPI_GROUP, group);
    *handle = group->handle;
    return MPI_SUCCESS;
}

int spc_mpi_get_group(MPI_Group handle, const spc_mpi_group_t **group) {
    *group = handle == MPI_GROUP_EMPTY ? &empty : spc_mpi_handle_find(SPC_MPI_GROUP, (intptr_t)handle);
    if (*group == NULL) {
        return spc_mpi_fail(NULL, MPI_ERR_GROUP,
                            handle == MPI_GROUP_NULL ? "the group is MPI_GROUP_NULL"
                                                     : "the group is not a valid handle, or was freed");
    }
    return MPI_SUCCESS;
}

int spc_mpi_group_find(const spc_mpi_group_t *group, int member) {
    for (int rank = 0; rank < group->size; rank++) {
        if (group->members[rank] == member) {
            return rank;
        }
    }
    return -1;
}

/* ---- queries ---- */

int spc_mpi_group_size(MPI_Group group, int *size) {
    const spc_mpi_group_t *found;
    SPC_MPI_TRY(spc_mpi_get_group(group, &found));
    *size = found->size;
    return MPI_SUCCESS;
}

int spc_mpi_group_rank(MPI_Group group, int *rank) {
    const spc_mpi_group_t *found;
    SPC_MPI_TRY(spc_mpi_get_group(group, &found));
    *rank = found->rank;
    return MPI_SUCCESS;
}

int spc_mpi_group_free(MPI_Group *group) {
    const spc_mpi_group_t *found;
    SPC_MPI_TRY(spc_mpi_get_group(*group, &found));
    if (found != &empty) {
        spc_mpi_handle_free(SPC_MPI_GROUP, (intptr_t)*group);
        free((void *)found);
    }
    *group = MPI_GROUP_NULL;
    return MPI_SUCCESS;
}

static bool has_all(const spc_mpi_group_t *left, const spc_mpi_group_t *right) {
    for (int rank = 0; rank < left->size; rank++) {
        if (spc_mpi_group_find(right, left->members[rank]) < 0) {
            return false;
        }
    }
    return true;
}

int spc_mpi_group_compare(MPI_Group group1, MPI_Group group2, int *result) {
    const spc_mpi_group_t *left, *right;
    SPC_MPI_TRY(spc_mpi_get_group(group1, &left));
    SPC_MPI_TRY(spc_mpi_get_group(group2, &right));
    *result = spc_mpi_groups_relate(left, right);
    return MPI_SUCCESS;
}

int spc_mpi_groups_relate(const spc_mpi_group_t *left, const spc_mpi_group_t *right) {
    if (left->size != right->size || !has_all(left, right)) {
        return MPI_UNEQUAL;
    }
    const bool same = memcmp(left->members, right->members, sizeof(int) * (size_t)left->size) == 0;
    return same ? MPI_IDENT : MPI_SIMILAR;
}

/* MPI_ERR_RANK unless it is a rank of the group. */
static int check_member(const spc_mpi_group_t *group, int rank) {
    if (rank >= 0 && rank < group->size) {
        return MPI_SUCCESS;
    }
    return spc_mpi_fail(NULL, MPI_ERR_RANK, "there is no rank %d in this group; it has %d (0 to %d)", rank,
                        group->size, group->size - 1);
}

int spc_mpi_group_translate_ranks(MPI_Group group1, int n, const int ranks1[], MPI_Group group2,
                                  int ranks2[]) {
    const spc_mpi_group_t *from, *to;
    SPC_MPI_TRY(spc_mpi_get_group(group1, &from));
    SPC_MPI_TRY(spc_mpi_get_group(group2, &to));
    for (int i = 0; i < n; i++) {
        if (ranks1[i] == MPI_PROC_NULL) {
            ranks2[i] = MPI_PROC_NULL;
            continue;
        }
        SPC_MPI_TRY(check_member(from, ranks1[i]));
        const int rank = spc_mpi_group_find(to, from->members[ranks1[i]]);
        ranks2[i] = rank < 0 ? MPI_UNDEFINED : rank;
    }
    return MPI_SUCCESS;
}

/* ---- parts ---- */

static int check_count(int n) {
    return n >= 0 ? MPI_SUCCESS : spc_mpi_fail(NULL, MPI_ERR_ARG, "n is %d; it cannot be negative", n);
}

/* Marks the ranks of the group that the caller lists. A rank that is listed twice, or does not exist, is an error.
 * The caller frees `is_listed`. */
static int mark_listed(const spc_mpi_group_t *group, int n, const int ranks[], bool **is_listed) {
    bool *listed = calloc((size_t)group->size + 1, sizeof(*listed));
    int code = listed != NULL ? check_count(n)
                              : spc_mpi_fail(NULL, MPI_ERR_NO_MEM, "there is no memory for a group");
    for (int i = 0; i < n && code == MPI_SUCCESS; i++) {
        code = check_member(group, ranks[i]);
        if (code == MPI_SUCCESS && listed[ranks[i]]) {
            code = spc_mpi_fail(NULL, MPI_ERR_RANK, "rank %d is given twice", ranks[i]);
        } else if (code == MPI_SUCCESS) {
            listed[ranks[i]] = true;
        }
    }
    if (code != MPI_SUCCESS) {
        free(listed);
        return code;
    }
    *is_listed = listed;
    return MPI_SUCCESS;
}

static int include(const spc_mpi_group_t *group, int n, const int ranks[], MPI_Group *newgroup) {
    bool *is_listed;
    SPC_MPI_TRY(mark_listed(group, n, ranks, &is_listed));
    free(is_listed);
    spc_mpi_group_t *made = spc_mpi_group_create(n);
    for (int i = 0; i < n && made != NULL; i++) {
        made->members[i] = group->members[ranks[i]];
    }
    return spc_mpi_group_publish(made, newgroup);
}

static int exclude(const spc_mpi_group_t *group, int n, const int ranks[], MPI_Group *newgroup) {
    bool *is_listed;
    SPC_MPI_TRY(mark_listed(group, n, ranks, &is_listed));
    spc_mpi_group_t *made = spc_mpi_group_create(group->size - n);
    for (int rank = 0, next = 0; rank < group->size && made != NULL; rank++) {
        if (!is_listed[rank]) {
            made->members[next++] = group->members[rank];
        }
    }
    free(is_listed);
    return spc_mpi_group_publish(made, newgroup);
}

int spc_mpi_group_incl(MPI_Group group, int n, const int ranks[], MPI_Group *newgroup) {
    const spc_mpi_group_t *found;
    SPC_MPI_TRY(spc_mpi_get_group(group, &found));
    return include(found, n, ranks, newgroup);
}

int spc_mpi_group_excl(MPI_Group group, int n, const int ranks[], MPI_Group *newgroup) {
    const spc_mpi_group_t *found;
    SPC_MPI_TRY(spc_mpi_get_group(group, &found));
    return exclude(found, n, ranks, newgroup);
}

/* The ranks of ranges (first, last, stride), each checked as it is listed, so the list never exceeds the group. The
 * caller frees `ranks`. */
static int list_ranges(const spc_mpi_group_t *group, int n, int ranges[][3], int *count, int **ranks) {
    SPC_MPI_TRY(check_count(n));
    int *list = malloc(sizeof(int) * ((size_t)group->size + 1));
    int code =
        list != NULL ? MPI_SUCCESS : spc_mpi_fail(NULL, MPI_ERR_NO_MEM, "there is no memory for a group");
    *count = 0;
    for (int i = 0; i < n && code == MPI_SUCCESS; i++) {
        const int64_t first = ranges[i][0], last = ranges[i][1], stride = ranges[i][2];
        if (stride == 0) {
            code = spc_mpi_fail(NULL, MPI_ERR_ARG, "the stride of range %d is 0", i);
        }
        for (int64_t rank = first; code == MPI_SUCCESS && (stride > 0 ? rank <= last : rank >= last);
             rank += stride) {
            code = check_member(group, (int)rank);
            if (code == MPI_SUCCESS && *count == group->size) {
                code = spc_mpi_fail(NULL, MPI_ERR_RANK, "the ranges give a rank twice");
            } else if (code == MPI_SUCCESS) {
                list[(*count)++] = (int)rank;
            }
        }
    }
    if (code != MPI_SUCCESS) {
        free(list);
        return code;
    }
    *ranks = list;
    return MPI_SUCCESS;
}

int spc_mpi_group_range_incl(MPI_Group group, int n, int ranges[][3], MPI_Group *newgroup) {
    const spc_mpi_group_t *found;
    int count, *ranks;
    SPC_MPI_TRY(spc_mpi_get_group(group, &found));
    SPC_MPI_TRY(list_ranges(found, n, ranges, &count, &ranks));
    const int code = include(found, count, ranks, newgroup);
    free(ranks);
    return code;
}

int spc_mpi_group_range_excl(MPI_Group group, int n, int ranges[][3], MPI_Group *newgroup) {
    const spc_mpi_group_t *found;
    int count, *ranks;
    SPC_MPI_TRY(spc_mpi_get_group(group, &found));
    SPC_MPI_TRY(list_ranges(found, n, ranges, &count, &ranks));
    const int code = exclude(found, count, ranks, newgroup);
    free(ranks);
    return code;
}

/* ---- two groups ---- */

/* Adds the members of the left group that the right one also has (`shared`), or lacks. */
static void add_members(spc_mpi_group_t *made, const spc_mpi_group_t *left, const spc_mpi_group_t *right,
                        bool shared) {
    for (int rank = 0; rank < left->size; rank++) {
        if ((spc_mpi_group_find(right, left->members[rank]) >= 0) == shared) {
            made->members[made->size++] = left->members[rank];
        }
    }
}

typedef enum set_operation { UNION, INTERSECTION, DIFFERENCE } set_operation_t;

static int combine(MPI_Group group1, MPI_Group group2, set_operation_t operation, MPI_Group *newgroup) {
    const spc_mpi_group_t *left, *right;
    SPC_MPI_TRY(spc_mpi_get_group(group1, &left));
    SPC_MPI_TRY(spc_mpi_get_group(group2, &right));
    spc_mpi_group_t *made = spc_mpi_group_create(left->size + right->size);
    if (made != NULL) {
        made->size = 0;
        if (operation == UNION) {
            add_members(made, left, &empty, false);
            add_members(made, right, left, false);
        } else {
            add_members(made, left, right, operation == INTERSECTION);
        }
    }
    return spc_mpi_group_publish(made, newgroup);
}

int spc_mpi_group_union(MPI_Group group1, MPI_Group group2, MPI_Group *newgroup) {
    return combine(group1, group2, UNION, newgroup);
}

int spc_mpi_group_intersection(MPI_Group group1, MPI_Group group2, MPI_Group *newgroup) {
    return combine(group1, group2, INTERSECTION, newgroup);
}

int spc_mpi_group_difference(MPI_Group group1, MPI_Group group2, MPI_Group *newgroup) {
    return combine(group1, group2, DIFFERENCE, newgroup);
}
