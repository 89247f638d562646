/* SPDX-License-Identifier: MIT */
/*
 * Duplicates that a request completes.
 *
 * The communicator has its handle, its groups and copies of the attributes when the call returns, as if it were
 * duplicated then. Its core (comm/spc_duplicate.h) comes when all members have called; the thread that completes the
 * request gives it to the communicator. Before that the handle is refused, except where a program sets the error
 * handler. One of two groups needs a second core, for the local group.
 */
#include "comm/spc_duplicate.h"
#include "mpi/spc_mpi_request.h"

typedef struct kept {
    spc_mpi_comm_t *made; /* NULL once it is the program's, or was discarded */
    spc_duplicate_t *core;
    spc_duplicate_t *local; /* NULL: of one group */
    int copied; /* the code of the copying of its attributes: the others are not to wait for a node where it fails */
    bool is_finished;
    int code; /* with which it was */
} kept_t;

/* ---- the communicator without its core ---- */

static spc_mpi_group_t *copy_group(const spc_mpi_group_t *from) {
    spc_mpi_group_t *made = spc_mpi_group_create(from->size);
    if (made != NULL) {
        made->rank = from->rank;
        memcpy(made->members, from->members, sizeof(int) * (size_t)from->size);
    }
    return made;
}

static spc_mpi_comm_t *create_like(const spc_mpi_comm_t *comm) {
    spc_mpi_comm_t *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return NULL;
    }
    made->rank = comm->rank;
    made->size = comm->size;
    made->group = copy_group(comm->group);
    made->remote = comm->remote != NULL ? copy_group(comm->remote) : NULL;
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

/* ---- the request ---- */

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

static spc_mpi_request_t *create_request(spc_mpi_comm_t *comm) {
    spc_mpi_request_t *request = spc_mpi_request_create(comm, NULL);
    kept_t *kept = calloc(1, sizeof(*kept));
    spc_mpi_comm_t *made = create_like(comm);
    if (request == NULL || kept == NULL || made == NULL) {
        free(kept);
        if (made != NULL) {
            spc_mpi_comm_discard(made);
        }
        if (request != NULL) {
            spc_mpi_request_destroy(request);
        }
        return NULL;
    }
    kept->made = made;
    request->arguments = kept;
    request->release = release;
    request->finish = finish;
    return request;
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

/* ---- MPI functions ---- */

int spc_mpi_comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm, MPI_Request *request) {
    spc_mpi_comm_t *found;
    *newcomm = MPI_COMM_NULL;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    spc_mpi_request_t *made = create_request(found);
    if (made == NULL) {
        return spc_mpi_fail(found, MPI_ERR_NO_MEM, "there is no memory for a communicator");
    }
    kept_t *kept = made->arguments;
    kept->copied = spc_mpi_comm_copy_extras(found, info, kept->made);
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
