/* SPDX-License-Identifier: MIT */
/*
 * Reading and writing files: by an offset, the individual pointer or the shared one; alone, together or in the order of
 * ranks. Collective calls do the same as individual ones: only the order of ranks needs the other nodes.
 */
#include <errno.h>
#include <unistd.h>

#include "mpi/file/spc_mpi_file.h"
#include "mpi/message/spc_mpi_request.h"
#include "mpi/type/spc_mpi_pack.h"

typedef struct call {
    spc_mpi_file_t *file;
    void *buffer;
    MPI_Count count;
    spc_mpi_type_t *type;
    bool writes;
    MPI_Count done; /* bytes */
} call_t;

/* ---- packed bytes to and from the file ---- */

typedef struct stream {
    const spc_mpi_file_t *file;
    char *data;
    bool writes;
    bool has_ended; /* the file ended during a read */
    MPI_Count done;
} stream_t;

/* spc_mpi_take_run_t */
static int copy_run(void *argument, MPI_Count at, MPI_Count bytes) {
    stream_t *stream = argument;
    const int descriptor = stream->file->descriptor;
    while (bytes > 0 && !stream->has_ended) {
        const off_t place = stream->file->disp + at;
        const ssize_t now = stream->writes
                                ? pwrite(descriptor, stream->data + stream->done, (size_t)bytes, place)
                                : pread(descriptor, stream->data + stream->done, (size_t)bytes, place);
        if (now < 0 && errno != EINTR) {
            return spc_mpi_file_fail(stream->file, errno);
        }
        stream->has_ended = now == 0;
        stream->done += now > 0 ? now : 0;
        at += now > 0 ? now : 0;
        bytes -= now > 0 ? now : 0;
    }
    return MPI_SUCCESS;
}

static int stream_bytes(call_t *call, MPI_Offset offset, char *data) {
    const spc_mpi_file_t *file = call->file;
    stream_t stream = {.file = file, .data = data, .writes = call->writes};
    const int code = spc_mpi_type_walk(file->filetype, offset * file->etype->size,
                                       call->count * call->type->size, copy_run, &stream);
    call->done = stream.done;
    return code;
}

static int pack(const call_t *call, char *packed) {
    const MPI_Count bytes = call->count * call->type->size;
    MPI_Count position = 0;
    if (call->file->is_external) {
        return spc_mpi_pack_external("external32", call->buffer, call->count, call->type->handle, packed,
                                     bytes, &position);
    }
    (void)spc_mpi_type_pack(call->buffer, call->count, call->type, packed);
    return MPI_SUCCESS;
}

static int unpack(const call_t *call, const char *packed) {
    MPI_Count position = 0;
    if (call->file->is_external) {
        return spc_mpi_unpack_external("external32", packed, call->done, &position, call->buffer,
                                       call->done / call->type->size, call->type->handle);
    }
    spc_mpi_type_unpack(packed, call->done, call->buffer, call->count, call->type);
    return MPI_SUCCESS;
}

static int copy_packed(call_t *call, MPI_Offset offset) {
    const MPI_Count bytes = call->count * call->type->size;
    char *packed = malloc((size_t)bytes + 1);
    if (packed == NULL) {
        return spc_mpi_fail(call->file->comm, MPI_ERR_NO_MEM, "%s: there is no memory for %lld bytes",
                            call->file->name, (long long)bytes);
    }
    int code = call->writes ? pack(call, packed) : MPI_SUCCESS;
    code = code == MPI_SUCCESS ? stream_bytes(call, offset, packed) : code;
    if (code == MPI_SUCCESS && !call->writes) {
        code = unpack(call, packed);
    }
    free(packed);
    return code;
}

/* ---- calls ---- */

static int check_way(const call_t *call) {
    const spc_mpi_file_t *file = call->file;
    if (call->writes && (file->amode & MPI_MODE_RDONLY) != 0) {
        return spc_mpi_fail(file->comm, MPI_ERR_READ_ONLY, "%s: it was opened with MPI_MODE_RDONLY",
                            file->name);
    }
    if (!call->writes && (file->amode & MPI_MODE_WRONLY) != 0) {
        return spc_mpi_fail(file->comm, MPI_ERR_ACCESS, "%s: it was opened with MPI_MODE_WRONLY", file->name);
    }
    return MPI_SUCCESS;
}

static int begin(MPI_File handle, const void *buffer, MPI_Count count, MPI_Datatype type, bool writes,
                 call_t *call) {
    *call = (call_t){.buffer = (void *)buffer, .count = count, .writes = writes};
    SPC_MPI_TRY(spc_mpi_get_file(handle, &call->file));
    SPC_MPI_TRY(spc_mpi_get_type(call->file->comm, type, &call->type));
    if (count < 0) {
        return spc_mpi_fail(call->file->comm, MPI_ERR_COUNT, "%s: count=%lld: a count cannot be negative",
                            call->file->name, (long long)count);
    }
    return check_way(call);
}

static int copy_at(call_t *call, MPI_Offset offset) {
    if (offset < 0) {
        return spc_mpi_fail(call->file->comm, MPI_ERR_ARG, "%s: offset=%lld: an offset is 0 or more",
                            call->file->name, offset);
    }
    const bool is_direct = call->type->is_dense && !call->file->is_external;
    return is_direct ? stream_bytes(call, offset, call->buffer) : copy_packed(call, offset);
}

/* The number of etypes in this many bytes. */
static MPI_Offset etypes(const call_t *call, MPI_Count bytes) {
    return (bytes + call->file->etype->size - 1) / call->file->etype->size;
}

static int copy_next(call_t *call) {
    SPC_MPI_TRY(copy_at(call, call->file->position));
    call->file->position += etypes(call, call->done);
    return MPI_SUCCESS;
}

/* Moves the shared pointer first, so that other processes take what follows. */
static int copy_shared(call_t *call) {
    MPI_Offset at;
    SPC_MPI_TRY(spc_mpi_file_check_shared(call->file));
    SPC_MPI_TRY(spc_mpi_file_add_shared(call->file, etypes(call, call->count * call->type->size), &at));
    return copy_at(call, at);
}

static int copy_ordered(call_t *call) {
    const spc_mpi_file_t *file = call->file;
    const spc_mpi_comm_t *comm = file->comm;
    SPC_MPI_TRY(spc_mpi_file_check_shared(file));
    const MPI_Offset mine = etypes(call, call->count * call->type->size);
    MPI_Offset *all = malloc(sizeof(*all) * (size_t)comm->size);
    if (all == NULL) {
        return spc_mpi_fail(comm, MPI_ERR_NO_MEM, "%s: there is no memory for its order", file->name);
    }
    MPI_Offset at = 0;
    int code = spc_mpi_barrier_inside(comm);
    code = code == MPI_SUCCESS ? spc_mpi_file_add_shared(file, 0, &at) : code;
    MPI_Offset end = at;
    code = code == MPI_SUCCESS ? spc_mpi_allgather_bytes(comm, &mine, sizeof(mine), all) : code;
    for (int rank = 0; rank < comm->size && code == MPI_SUCCESS; rank++) {
        at += rank < comm->rank ? all[rank] : 0;
        end += all[rank];
    }
    free(all);
    SPC_MPI_TRY(code);
    code = copy_at(call, at);
    SPC_MPI_TRY(spc_mpi_barrier_inside(comm)); /* all have read the pointer */
    if (comm->rank == 0) {
        SPC_MPI_TRY(spc_mpi_file_set_shared(file, end));
    }
    SPC_MPI_TRY(spc_mpi_barrier_inside(comm));
    return code;
}

typedef enum way { BY_POINTER, BY_SHARED, BY_ORDER, BY_OFFSET } way_t;

static int copy(call_t *call, way_t way, MPI_Offset offset) {
    switch (way) {
    case BY_POINTER:
        return copy_next(call);
    case BY_SHARED:
        return copy_shared(call);
    case BY_ORDER:
        return copy_ordered(call);
    default:
        return copy_at(call, offset);
    }
}

static int now(MPI_File handle, way_t way, MPI_Offset offset, const void *buffer, MPI_Count count,
               MPI_Datatype type, bool writes, MPI_Status *status) {
    call_t call;
    SPC_MPI_TRY(begin(handle, buffer, count, type, writes, &call));
    SPC_MPI_TRY(copy(&call, way, offset));
    spc_mpi_status_set(status, MPI_ANY_SOURCE, MPI_ANY_TAG, call.done, false);
    return MPI_SUCCESS;
}

static int later(MPI_File handle, way_t way, MPI_Offset offset, const void *buffer, MPI_Count count,
                 MPI_Datatype type, bool writes, MPI_Request *handle_of_request) {
    call_t call;
    *handle_of_request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(begin(handle, buffer, count, type, writes, &call));
    SPC_MPI_TRY(copy(&call, way, offset));
    SPC_MPI_TRY(spc_mpi_request_done(spc_mpi.world, handle_of_request));
    spc_mpi_request_t *request = spc_mpi_handle_find(SPC_MPI_REQUEST, (intptr_t)*handle_of_request);
    request->bytes = call.done;
    return MPI_SUCCESS;
}

/* ---- split collectives: the first half does it all ---- */

static int first_half(MPI_File handle, way_t way, MPI_Offset offset, const void *buffer, MPI_Count count,
                      MPI_Datatype type, bool writes) {
    call_t call;
    SPC_MPI_TRY(begin(handle, buffer, count, type, writes, &call));
    if (call.file->has_begun) {
        return spc_mpi_fail(call.file->comm, MPI_ERR_OTHER,
                            "%s: another split collective has begun, and its end was not called",
                            call.file->name);
    }
    SPC_MPI_TRY(copy(&call, way, offset));
    call.file->has_begun = true;
    call.file->begun_bytes = call.done;
    return MPI_SUCCESS;
}

static int second_half(MPI_File handle, MPI_Status *status) {
    spc_mpi_file_t *file;
    SPC_MPI_TRY(spc_mpi_get_file(handle, &file));
    if (!file->has_begun) {
        return spc_mpi_fail(file->comm, MPI_ERR_OTHER, "%s: no split collective has begun", file->name);
    }
    file->has_begun = false;
    spc_mpi_status_set(status, MPI_ANY_SOURCE, MPI_ANY_TAG, file->begun_bytes, false);
    return MPI_SUCCESS;
}

/* ---- MPI's functions ---- */

int spc_mpi_file_read(MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Status *status) {
    return now(fh, BY_POINTER, 0, buf, count, datatype, false, status);
}

int spc_mpi_file_iread(MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Request *request) {
    return later(fh, BY_POINTER, 0, buf, count, datatype, false, request);
}

int spc_mpi_file_read_all(MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype,
                          MPI_Status *status) {
    return now(fh, BY_POINTER, 0, buf, count, datatype, false, status);
}

int spc_mpi_file_iread_all(MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype,
                           MPI_Request *request) {
    return later(fh, BY_POINTER, 0, buf, count, datatype, false, request);
}

int spc_mpi_file_read_all_begin(MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype) {
    return first_half(fh, BY_POINTER, 0, buf, count, datatype, false);
}

int spc_mpi_file_read_all_end(MPI_File fh, void *buf, MPI_Status *status) {
    (void)buf;
    return second_half(fh, status);
}

int spc_mpi_file_read_at(MPI_File fh, MPI_Offset offset, void *buf, MPI_Count count, MPI_Datatype datatype,
                         MPI_Status *status) {
    return now(fh, BY_OFFSET, offset, buf, count, datatype, false, status);
}

int spc_mpi_file_iread_at(MPI_File fh, MPI_Offset offset, void *buf, MPI_Count count, MPI_Datatype datatype,
                          MPI_Request *request) {
    return later(fh, BY_OFFSET, offset, buf, count, datatype, false, request);
}

int spc_mpi_file_read_at_all(MPI_File fh, MPI_Offset offset, void *buf, MPI_Count count,
                             MPI_Datatype datatype, MPI_Status *status) {
    return now(fh, BY_OFFSET, offset, buf, count, datatype, false, status);
}

int spc_mpi_file_iread_at_all(MPI_File fh, MPI_Offset offset, void *buf, MPI_Count count,
                              MPI_Datatype datatype, MPI_Request *request) {
    return later(fh, BY_OFFSET, offset, buf, count, datatype, false, request);
}

int spc_mpi_file_read_at_all_begin(MPI_File fh, MPI_Offset offset, void *buf, MPI_Count count,
                                   MPI_Datatype datatype) {
    return first_half(fh, BY_OFFSET, offset, buf, count, datatype, false);
}

int spc_mpi_file_read_at_all_end(MPI_File fh, void *buf, MPI_Status *status) {
    (void)buf;
    return second_half(fh, status);
}

int spc_mpi_file_read_shared(MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype,
                             MPI_Status *status) {
    return now(fh, BY_SHARED, 0, buf, count, datatype, false, status);
}

int spc_mpi_file_iread_shared(MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype,
                              MPI_Request *request) {
    return later(fh, BY_SHARED, 0, buf, count, datatype, false, request);
}

int spc_mpi_file_read_ordered(MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype,
                              MPI_Status *status) {
    return now(fh, BY_ORDER, 0, buf, count, datatype, false, status);
}

int spc_mpi_file_read_ordered_begin(MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype) {
    return first_half(fh, BY_ORDER, 0, buf, count, datatype, false);
}

int spc_mpi_file_read_ordered_end(MPI_File fh, void *buf, MPI_Status *status) {
    (void)buf;
    return second_half(fh, status);
}

int spc_mpi_file_write(MPI_File fh, const void *buf, MPI_Count count, MPI_Datatype datatype,
                       MPI_Status *status) {
    return now(fh, BY_POINTER, 0, buf, count, datatype, true, status);
}

int spc_mpi_file_iwrite(MPI_File fh, const void *buf, MPI_Count count, MPI_Datatype datatype,
                        MPI_Request *request) {
    return later(fh, BY_POINTER, 0, buf, count, datatype, true, request);
}

int spc_mpi_file_write_all(MPI_File fh, const void *buf, MPI_Count count, MPI_Datatype datatype,
                           MPI_Status *status) {
    return now(fh, BY_POINTER, 0, buf, count, datatype, true, status);
}

int spc_mpi_file_iwrite_all(MPI_File fh, const void *buf, MPI_Count count, MPI_Datatype datatype,
                            MPI_Request *request) {
    return later(fh, BY_POINTER, 0, buf, count, datatype, true, request);
}

int spc_mpi_file_write_all_begin(MPI_File fh, const void *buf, MPI_Count count, MPI_Datatype datatype) {
    return first_half(fh, BY_POINTER, 0, buf, count, datatype, true);
}

int spc_mpi_file_write_all_end(MPI_File fh, const void *buf, MPI_Status *status) {
    (void)buf;
    return second_half(fh, status);
}

int spc_mpi_file_write_at(MPI_File fh, MPI_Offset offset, const void *buf, MPI_Count count,
                          MPI_Datatype datatype, MPI_Status *status) {
    return now(fh, BY_OFFSET, offset, buf, count, datatype, true, status);
}

int spc_mpi_file_iwrite_at(MPI_File fh, MPI_Offset offset, const void *buf, MPI_Count count,
                           MPI_Datatype datatype, MPI_Request *request) {
    return later(fh, BY_OFFSET, offset, buf, count, datatype, true, request);
}

int spc_mpi_file_write_at_all(MPI_File fh, MPI_Offset offset, const void *buf, MPI_Count count,
                              MPI_Datatype datatype, MPI_Status *status) {
    return now(fh, BY_OFFSET, offset, buf, count, datatype, true, status);
}

int spc_mpi_file_iwrite_at_all(MPI_File fh, MPI_Offset offset, const void *buf, MPI_Count count,
                               MPI_Datatype datatype, MPI_Request *request) {
    return later(fh, BY_OFFSET, offset, buf, count, datatype, true, request);
}

int spc_mpi_file_write_at_all_begin(MPI_File fh, MPI_Offset offset, const void *buf, MPI_Count count,
                                    MPI_Datatype datatype) {
    return first_half(fh, BY_OFFSET, offset, buf, count, datatype, true);
}

int spc_mpi_file_write_at_all_end(MPI_File fh, const void *buf, MPI_Status *status) {
    (void)buf;
    return second_half(fh, status);
}

int spc_mpi_file_write_shared(MPI_File fh, const void *buf, MPI_Count count, MPI_Datatype datatype,
                              MPI_Status *status) {
    return now(fh, BY_SHARED, 0, buf, count, datatype, true, status);
}

int spc_mpi_file_iwrite_shared(MPI_File fh, const void *buf, MPI_Count count, MPI_Datatype datatype,
                               MPI_Request *request) {
    return later(fh, BY_SHARED, 0, buf, count, datatype, true, request);
}

int spc_mpi_file_write_ordered(MPI_File fh, const void *buf, MPI_Count count, MPI_Datatype datatype,
                               MPI_Status *status) {
    return now(fh, BY_ORDER, 0, buf, count, datatype, true, status);
}

int spc_mpi_file_write_ordered_begin(MPI_File fh, const void *buf, MPI_Count count, MPI_Datatype datatype) {
    return first_half(fh, BY_ORDER, 0, buf, count, datatype, true);
}

int spc_mpi_file_write_ordered_end(MPI_File fh, const void *buf, MPI_Status *status) {
    (void)buf;
    return second_half(fh, status);
}
