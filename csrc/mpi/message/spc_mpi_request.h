/* SPDX-License-Identifier: MIT */
/*
 * spc_mpi_request: an MPI request around one of the core's (comm/spc_request.h), and statuses.
 *
 * Requests come from a pool: no call allocates once the pool is large enough. A send that is complete when its call
 * returns has no request of its own: its handle is that of spc_mpi_request_sent, which is always done and may be waited
 * for any number of times.
 */
#ifndef SPC_MPI_REQUEST_H
#define SPC_MPI_REQUEST_H

#include "mpi/message/spc_mpi_diagnose.h"
#include "mpi/type/spc_mpi_type.h"

struct spc_mpi_request {
    spc_request_t core; /* first: the core gives it back to `deliver` */
    MPI_Request handle;
    spc_mpi_comm_t *comm; /* holds a reference; NULL: none */
    bool is_used; /* the program has it; else it is in the pool */
    bool is_persistent;
    bool is_active; /* of a persistent one: started and not completed */
    bool is_cancelled;
    bool is_forgotten; /* after MPI_Request_free: it ends when it is done */
    bool is_reported;  /* at the end of the program */
    int error;         /* the error class with which completion fails */

    /* For its status, and of a receive: where the data go. */
    int source;
    int tag;
    MPI_Count bytes;
    uint64_t delivered; /* how many receives had their messages, with this one; 0: it has none yet */
    uint8_t format; /* of a message whose elements are of another type; 0: they are as expected */
    void *buffer;
    MPI_Count count;
    spc_mpi_type_t *type; /* holds a reference; NULL: none */

    /* Ends the operation when it is done, in the thread that completes the request; NULL: nothing is left to do. */
    int (*finish)(spc_mpi_request_t *request);
    /* Starts a persistent one again. */
    int (*start)(spc_mpi_request_t *request);
    void *arguments; /* freed with the request, after `release` if that is set */
    void (*release)(spc_mpi_request_t *request);
    int peer, wanted_tag;

    /* Functions of a generalized one. */
    MPI_Grequest_query_function *query;
    MPI_Grequest_free_function *free_function;
    MPI_Grequest_cancel_function *cancel;
    void *extra_state;

    const char *made_by; /* the MPI function that made it */
    spc_mpi_place_t place; /* the line that called it */
    bool is_sealed; /* of a send, with --strict: the data must not change before its completion */
    uint64_t seal;
    spc_mpi_request_t *next_free;
    spc_mpi_request_t *next_made; /* all that were ever made */
};

extern spc_mpi_request_t spc_mpi_request_sent;

void spc_mpi_requests_start(void);

/* A request from the pool, with its handle, not done yet. It holds references to both, which may be NULL. `bytes`: the
 * size of its `arguments`, all zero; 0: it has none. MPI_ERR_NO_MEM. */
int spc_mpi_request_create(spc_mpi_comm_t *comm, spc_mpi_type_t *type, size_t bytes,
                           spc_mpi_request_t **request);
void spc_mpi_request_destroy(spc_mpi_request_t *request);

/* At the end of the program: warns of each request that the program never completed. */
void spc_mpi_requests_report(void);

/* When the process leaves its run: ends all of them. */
void spc_mpi_requests_end(void);
void spc_mpi_message_forget(void *message); /* one of MPI_Mprobe */

/* Makes a request that is done already, with an empty status: for operations that are carried out at once. */
int spc_mpi_request_done(spc_mpi_comm_t *comm, MPI_Request *handle);

/* Notes a checksum of a send's data, items of the request's type: completion fails if they have changed by then. */
void spc_mpi_request_seal(spc_mpi_request_t *request, const void *buffer, MPI_Count count);

/* Begins a receive into the request's buffer, from its peer, of a message that has this context and tag of the core. */
int spc_mpi_post(uint16_t context, int tag, spc_mpi_request_t *request);

/* Fills the status of a request that is done, and ends it: the handle becomes MPI_REQUEST_NULL unless persistent. */
int spc_mpi_complete(spc_mpi_request_t *request, MPI_Request *handle, MPI_Status *status);

/* ---- statuses ---- */

/* Leaves MPI_ERROR as it is; MPI_STATUS_IGNORE is allowed. */
void spc_mpi_status_set(MPI_Status *status, int source, int tag, MPI_Count bytes, bool is_cancelled);
MPI_Count spc_mpi_status_bytes(const MPI_Status *status);

#endif
