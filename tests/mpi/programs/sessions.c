/* SPDX-License-Identifier: MIT */
/* A program that has sessions and no MPI_Init; with an argument it calls MPI_Init after them. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int errors;

static void count_errors(MPI_Session *session, int *code, ...) {
    (void)session;
    (void)code;
    errors++;
}

#define CHECK(condition)                                            \
    do {                                                            \
        if (!(condition)) {                                         \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
            return 0;                                               \
        }                                                           \
    } while (0)

static int check_sets(MPI_Session session) {
    char name[64], size[8];
    int count, length = 0, has_size, bytes = 0;
    MPI_Info info;
    MPI_Session_get_num_psets(session, MPI_INFO_NULL, &count);
    CHECK(count == 2);
    MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 1, &length, NULL);
    CHECK(length == (int)strlen("mpi://SELF") + 1);
    MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 1, &length, name);
    CHECK(strcmp(name, "mpi://SELF") == 0);
    length = 4;
    MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &length, name);
    CHECK(strcmp(name, "mpi") == 0 && length == (int)strlen("mpi://WORLD") + 1);
    MPI_Session_get_pset_info(session, "mpi://SELF", &info);
    MPI_Info_get_string(info, "mpi_size", &bytes, NULL, &has_size);
    CHECK(has_size && bytes == 2);
    MPI_Info_get_string(info, "mpi_size", &bytes, size, &has_size);
    MPI_Info_free(&info);
    CHECK(has_size && strcmp(size, "1") == 0);
    return 1;
}

static int check_world(MPI_Session session) {
    MPI_Group group;
    MPI_Comm comm;
    int rank, size, sum = 0;
    CHECK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group) == MPI_SUCCESS);
    CHECK(MPI_Comm_create_from_group(group, "sessions.c", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm)
          == MPI_SUCCESS);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    CHECK(sum == size * (size - 1) / 2);
    return 1;
}

static int check_errors(MPI_Session session) {
    MPI_Group group;
    MPI_Errhandler handler;
    int code, error_class;
    code = MPI_Group_from_session_pset(session, "mpi://OTHER", &group);
    MPI_Error_class(code, &error_class);
    CHECK(error_class == MPI_ERR_ARG && group == MPI_GROUP_NULL);
    MPI_Session_create_errhandler(count_errors, &handler);
    MPI_Session_set_errhandler(session, handler);
    CHECK(MPI_Group_from_session_pset(session, "mpi://OTHER", &group) != MPI_SUCCESS && errors == 1);
    return 1;
}

int main(int argc, char **argv) {
    MPI_Session session, other;
    int is_initialized = 1;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &other);
    MPI_Initialized(&is_initialized);
    const int good = !is_initialized && check_sets(session) && check_world(other) && check_errors(session);
    MPI_Session_finalize(&other);
    MPI_Session_finalize(&session);
    if (argc == 1) { /* the run is left at the end of the process */
        return !(good && session == MPI_SESSION_NULL);
    }
    int size = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Finalize();
    return !(good && session == MPI_SESSION_NULL && size > 0);
}
