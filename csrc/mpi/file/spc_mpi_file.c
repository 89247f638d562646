/* SPDX-License-Identifier: MIT */
/*
 * Files: opening and closing, sizes, views, pointers, error handlers.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "mpi/file/spc_mpi_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpi/type/spc_mpi_pack.h"

/* ---- errors ---- */

static MPI_Errhandler default_errhandler; /* of MPI_FILE_NULL */
static bool has_default;

static MPI_Errhandler get_default(void) {
    return has_default ? default_errhandler : MPI_ERRORS_RETURN;
}

int spc_mpi_get_file(MPI_File handle, spc_mpi_file_t **file) {
    *file = spc_mpi_handle_find(SPC_MPI_FILE, (intptr_t)handle);
    if (*file == NULL) {
        return spc_mpi_fail_by(get_default(), SPC_MPI_FILE, (intptr_t)MPI_FILE_NULL, MPI_ERR_FILE, "%s",
                               handle == MPI_FILE_NULL ? "the file is MPI_FILE_NULL"
                                                       : "the file is not a valid handle, or was closed");
    }
    return MPI_SUCCESS;
}

static int class_of(int error) {
    switch (error) {
    case ENOENT:
        return MPI_ERR_NO_SUCH_FILE;
    case EEXIST:
        return MPI_ERR_FILE_EXISTS;
    case EACCES:
    case EPERM:
        return MPI_ERR_ACCESS;
    case EROFS:
        return MPI_ERR_READ_ONLY;
    case ENOSPC:
        return MPI_ERR_NO_SPACE;
    case EDQUOT:
        return MPI_ERR_QUOTA;
    case ENAMETOOLONG:
    case EISDIR:
    case ENOTDIR:
        return MPI_ERR_BAD_FILE;
    case EBUSY:
    case ETXTBSY:
        return MPI_ERR_FILE_IN_USE;
    default:
        return MPI_ERR_IO;
    }
}

int spc_mpi_file_fail(const spc_mpi_file_t *file, int error) {
    return spc_mpi_fail(file->comm, class_of(error), "%s: %s", file->name, strerror(error));
}

static int fail_unopened(const char *name, int error) {
    return spc_mpi_fail_by(get_default(), SPC_MPI_FILE, (intptr_t)MPI_FILE_NULL, class_of(error), "%s: %s",
                           name, strerror(error));
}

static int fail_amode(const char *name, int amode, const char *why) {
    return spc_mpi_fail_by(get_default(), SPC_MPI_FILE, (intptr_t)MPI_FILE_NULL, MPI_ERR_AMODE,
                           "%s: amode=%d: %s", name, amode, why);
}

int spc_mpi_file_check_shared(const spc_mpi_file_t *file) {
    return file->shared != NULL || file->pointer >= 0
               ? MPI_SUCCESS
               : spc_mpi_fail(file->comm, MPI_ERR_UNSUPPORTED_OPERATION,
                              "%s: a shared file pointer needs memory that all its nodes share, or a folder "
                              "of the file in "
                              "which all of them may make files",
                              file->name);
}

/* ---- the shared pointer ---- */

/* The system's lock keeps other processes out, and the mutex other threads of this one. */
static int change_pointer(const spc_mpi_file_t *file, bool adds, MPI_Offset number, MPI_Offset *before) {
    static pthread_mutex_t threads = PTHREAD_MUTEX_INITIALIZER;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = sizeof(*before)};
    int error = 0;
    *before = 0;
    pthread_mutex_lock(&threads);
    while (fcntl(file->pointer, F_SETLKW, &lock) != 0 && error == 0) {
        error = errno == EINTR ? 0 : errno;
    }
    if (error == 0 && pread(file->pointer, before, sizeof(*before), 0) < 0) {
        error = errno;
    }
    const MPI_Offset after = adds ? *before + number : number;
    if (error == 0 && after != *before && pwrite(file->pointer, &after, sizeof(after), 0) != sizeof(after)) {
        error = errno;
    }
    lock.l_type = F_UNLCK;
    (void)fcntl(file->pointer, F_SETLK, &lock);
    pthread_mutex_unlock(&threads);
    return error == 0 ? MPI_SUCCESS : spc_mpi_file_fail(file, error);
}

int spc_mpi_file_add_shared(const spc_mpi_file_t *file, MPI_Offset more, MPI_Offset *before) {
    if (file->shared == NULL) {
        return change_pointer(file, true, more, before);
    }
    *before = atomic_fetch_add_explicit(file->shared, more, memory_order_relaxed);
    return MPI_SUCCESS;
}

int spc_mpi_file_set_shared(const spc_mpi_file_t *file, MPI_Offset to) {
    MPI_Offset before;
    if (file->shared == NULL) {
        return change_pointer(file, false, to, &before);
    }
    atomic_store_explicit(file->shared, to, memory_order_relaxed);
    return MPI_SUCCESS;
}

/* Makes a file beside this one, whose name is removed when all have opened it. */
static int make_pointer_file(spc_mpi_file_t *file) {
    char name[4096] = "";
    if (file->comm->rank == 0) {
        const int length = snprintf(name, sizeof(name), "%s.pointer-XXXXXX", file->name);
        file->pointer = length < (int)sizeof(name) ? mkostemp(name, O_CLOEXEC) : -1;
        name[0] = file->pointer >= 0 ? name[0] : '\0';
    }
    SPC_MPI_TRY(spc_mpi_bcast_bytes(file->comm, name, sizeof(name), 0));
    if (file->comm->rank != 0 && name[0] != '\0') {
        file->pointer = open(name, O_RDWR | O_CLOEXEC);
    }
    SPC_MPI_TRY(spc_mpi_barrier_inside(file->comm));
    if (file->comm->rank == 0 && file->pointer >= 0) {
        (void)unlink(name);
    }
    return MPI_SUCCESS;
}

/* ---- opening ---- */

static int check_amode(const char *name, int amode) {
    const bool reads = (amode & MPI_MODE_RDONLY) != 0;
    const int ways = reads + ((amode & MPI_MODE_WRONLY) != 0) + ((amode & MPI_MODE_RDWR) != 0);
    if (ways != 1) {
        return fail_amode(name, amode,
                          "it must have exactly one of MPI_MODE_RDONLY, MPI_MODE_WRONLY and MPI_MODE_RDWR");
    }
    if (reads && (amode & (MPI_MODE_CREATE | MPI_MODE_EXCL)) != 0) {
        return fail_amode(name, amode, "MPI_MODE_RDONLY does not go with MPI_MODE_CREATE or MPI_MODE_EXCL");
    }
    if ((amode & MPI_MODE_RDWR) != 0 && (amode & MPI_MODE_SEQUENTIAL) != 0) {
        return fail_amode(name, amode, "MPI_MODE_RDWR does not go with MPI_MODE_SEQUENTIAL");
    }
    return MPI_SUCCESS;
}

static void destroy(spc_mpi_file_t *file) {
    if (file->descriptor >= 0) {
        (void)close(file->descriptor);
    }
    if (file->pointer >= 0) {
        (void)close(file->pointer);
    }
    if (file->block != NULL) {
        spc_comm_release_block(file->comm->core, file->block);
    }
    if (file->comm != NULL) {
        spc_mpi_comm_release(file->comm);
    }
    if (file->etype != NULL) {
        spc_mpi_type_release(file->etype);
        spc_mpi_type_release(file->filetype);
    }
    free(file->name);
    free(file);
}

void spc_mpi_file_forget(spc_mpi_file_t *file) {
    file->block = NULL; /* in memory of that run */
    destroy(file);
}

static int create(spc_mpi_comm_t *comm, const char *name, int amode, spc_mpi_file_t **file) {
    spc_mpi_type_t *byte;
    spc_comm_t *core;
    SPC_MPI_TRY(spc_mpi_get_type(comm, MPI_BYTE, &byte));
    SPC_MPI_TRY(spc_mpi_check(comm, spc_comm_split(comm->core, 0, comm->rank, SPC_NO_DEADLINE, &core)));
    spc_mpi_file_t *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return spc_mpi_fail(comm, MPI_ERR_NO_MEM, "there is no memory for a file");
    }
    made->descriptor = made->pointer = -1;
    made->amode = amode;
    made->info = MPI_INFO_NULL;
    made->name = strdup(name);
    made->comm = spc_mpi_comm_wrap(core, comm);
    if (made->name == NULL || made->comm == NULL) {
        destroy(made);
        return spc_mpi_fail(comm, MPI_ERR_NO_MEM, "there is no memory for a file");
    }
    spc_mpi_handle_free(SPC_MPI_COMM, (intptr_t)made->comm->handle);
    made->etype = made->filetype = byte;
    spc_mpi_type_retain(byte);
    spc_mpi_type_retain(byte);
    (void)snprintf(made->representation, sizeof(made->representation), "native");
    made->comm->errhandler = get_default();
    made->comm->handle = (MPI_Comm)(intptr_t)MPI_FILE_NULL;
    *file = made;
    return MPI_SUCCESS;
}

static int try_open(spc_mpi_file_t *file, int more_flags) {
    const int amode = file->amode;
    const int way = (amode & MPI_MODE_RDWR) != 0     ? O_RDWR
                    : (amode & MPI_MODE_WRONLY) != 0 ? O_WRONLY
                                                     : O_RDONLY;
    file->descriptor = open(file->name, way | more_flags | O_CLOEXEC, 0666);
    return file->descriptor < 0 ? errno : 0;
}

/* Rank 0 creates it before the others open it. If one fails, all fail, with the error of the lowest such rank. */
static int open_all(spc_mpi_file_t *file) {
    const spc_mpi_comm_t *comm = file->comm;
    int error = 0;
    if (comm->rank == 0) {
        error = try_open(file, ((file->amode & MPI_MODE_CREATE) != 0 ? O_CREAT : 0)
                                   | ((file->amode & MPI_MODE_EXCL) != 0 ? O_EXCL : 0));
    }
    SPC_MPI_TRY(spc_mpi_bcast_bytes(comm, &error, sizeof(error), 0));
    if (error == 0 && comm->rank != 0) {
        error = try_open(file, 0);
    }
    int *errors = calloc((size_t)comm->size, sizeof(*errors));
    if (errors == NULL) {
        return spc_mpi_fail(comm, MPI_ERR_NO_MEM, "there is no memory for a file");
    }
    const int code = spc_mpi_allgather_bytes(comm, &error, sizeof(error), errors);
    for (int rank = comm->size - 1; rank >= 0; rank--) {
        error = errors[rank] != 0 ? errors[rank] : error;
    }
    free(errors);
    SPC_MPI_TRY(code);
    return error == 0 ? MPI_SUCCESS : fail_unopened(file->name, error);
}

static bool is_in_one_box(const spc_mpi_comm_t *comm) {
    for (int rank = 1; rank < comm->size; rank++) {
        if (spc_comm_box(comm->core, (uint32_t)rank) != spc_comm_box(comm->core, 0)) {
            return false;
        }
    }
    return true;
}

static int share_pointer(spc_mpi_file_t *file) {
    const spc_mpi_comm_t *comm = file->comm;
    uint64_t offset = 0;
    const bool is_together = is_in_one_box(comm);
    if (comm->rank == 0 && is_together
        && spc_comm_take_block(comm->core, sizeof(*file->shared), &file->block) == SPC_OK) {
        memset(spc_block_payload(file->block), 0, sizeof(*file->shared));
        spc_comm_share_block(comm->core, file->block);
        (void)spc_comm_offset(comm->core, spc_block_payload(file->block), sizeof(*file->shared), &offset);
    }
    SPC_MPI_TRY(spc_mpi_bcast_bytes(comm, &offset, sizeof(offset), 0));
    file->shared = offset != 0 ? spc_comm_address(comm->core, offset) : NULL;
    return offset != 0 ? MPI_SUCCESS : make_pointer_file(file);
}

static int get_size(const spc_mpi_file_t *file, MPI_Offset *size) {
    struct stat state;
    if (fstat(file->descriptor, &state) != 0) {
        return spc_mpi_file_fail(file, errno);
    }
    *size = state.st_size;
    return MPI_SUCCESS;
}

static int open_on(spc_mpi_file_t *file, MPI_Info info, MPI_File *handle) {
    SPC_MPI_TRY(open_all(file));
    SPC_MPI_TRY(share_pointer(file));
    if ((file->amode & MPI_MODE_APPEND) != 0) {
        SPC_MPI_TRY(get_size(file, &file->position));
        if (file->comm->rank == 0 && (file->shared != NULL || file->pointer >= 0)) {
            SPC_MPI_TRY(spc_mpi_file_set_shared(file, file->position));
        }
        SPC_MPI_TRY(spc_mpi_barrier_inside(file->comm));
    }
    SPC_MPI_TRY(spc_mpi_hints_set(spc_mpi_file_hints, info, &file->info));
    file->handle = (MPI_File)spc_mpi_handle_create(SPC_MPI_FILE, file);
    file->comm->handle = (MPI_Comm)(intptr_t)file->handle;
    *handle = file->handle;
    return MPI_SUCCESS;
}

int spc_mpi_file_open(MPI_Comm comm, const char *filename, int amode, MPI_Info info, MPI_File *fh) {
    spc_mpi_comm_t *found;
    spc_mpi_file_t *file = NULL;
    *fh = MPI_FILE_NULL;
    SPC_MPI_TRY(spc_mpi_get_intra(comm, &found));
    SPC_MPI_TRY(check_amode(filename, amode));
    SPC_MPI_TRY(create(found, filename, amode, &file));
    const int code = open_on(file, info, fh);
    if (code != MPI_SUCCESS) {
        destroy(file);
    }
    return code;
}

int spc_mpi_file_close(MPI_File *fh) {
    spc_mpi_file_t *file;
    SPC_MPI_TRY(spc_mpi_get_file(*fh, &file));
    SPC_MPI_TRY(spc_mpi_barrier_inside(file->comm));
    if ((file->amode & MPI_MODE_DELETE_ON_CLOSE) != 0 && file->comm->rank == 0) {
        (void)unlink(file->name);
    }
    if (file->block != NULL) {
        spc_comm_unshare_block(file->comm->core, file->block);
    }
    if (file->info != MPI_INFO_NULL) {
        SPC_MPI_TRY(spc_mpi_info_free(&file->info));
    }
    spc_mpi_handle_free(SPC_MPI_FILE, (intptr_t)*fh);
    destroy(file);
    *fh = MPI_FILE_NULL;
    return MPI_SUCCESS;
}

int spc_mpi_file_delete(const char *filename, MPI_Info info) {
    (void)info;
    return unlink(filename) == 0 ? MPI_SUCCESS : fail_unopened(filename, errno);
}

/* ---- sizes ---- */

static int resize(const spc_mpi_file_t *file, MPI_Offset size, bool only_grows) {
    MPI_Offset now;
    int error = 0;
    if (size < 0) {
        return spc_mpi_fail(file->comm, MPI_ERR_ARG, "%s: size=%lld: a size is 0 or more", file->name, size);
    }
    SPC_MPI_TRY(spc_mpi_barrier_inside(file->comm));
    SPC_MPI_TRY(get_size(file, &now));
    if (file->comm->rank == 0 && (!only_grows || now < size)) {
        error = ftruncate(file->descriptor, size) != 0 ? errno : 0;
    }
    SPC_MPI_TRY(spc_mpi_bcast_bytes(file->comm, &error, sizeof(error), 0));
    return error == 0 ? MPI_SUCCESS : spc_mpi_file_fail(file, error);
}

int spc_mpi_file_set_size(MPI_File fh, MPI_Offset size) {
    spc_mpi_file_t *file;
    SPC_MPI_TRY(spc_mpi_get_file(fh, &file));
    return resize(file, size, false);
}

int spc_mpi_file_preallocate(MPI_File fh, MPI_Offset size) {
    spc_mpi_file_t *file;
    SPC_MPI_TRY(spc_mpi_get_file(fh, &file));
    return resize(file, size, true);
}

int spc_mpi_file_get_size(MPI_File fh, MPI_Offset *size) {
    spc_mpi_file_t *file;
    SPC_MPI_TRY(spc_mpi_get_file(fh, &file));
    return get_size(file, size);
}

int spc_mpi_file_sync(MPI_File fh) {
    spc_mpi_file_t *file;
    SPC_MPI_TRY(spc_mpi_get_file(fh, &file));
    if (fsync(file->descriptor) != 0 && errno != EINVAL) { /* EINVAL: this kind of file cannot be synced */
        return spc_mpi_file_fail(file, errno);
    }
    return spc_mpi_barrier_inside(file->comm);
}

/* ---- queries ---- */

int spc_mpi_file_get_amode(MPI_File fh, int *amode) {
    spc_mpi_file_t *file;
    SPC_MPI_TRY(spc_mpi_get_file(fh, &file));
    *amode = file->amode;
    return MPI_SUCCESS;
}

int spc_mpi_file_get_group(MPI_File fh, MPI_Group *group) {
    spc_mpi_file_t *file;
    SPC_MPI_TRY(spc_mpi_get_file(fh, &file));
    return spc_mpi_group_publish(spc_mpi_group_copy(file->comm->group), group);
}

int spc_mpi_file_get_info(MPI_File fh, MPI_Info *info_used) {
    spc_mpi_file_t *file;
    SPC_MPI_TRY(spc_mpi_get_file(fh, &file));
    return spc_mpi_hints_get(spc_mpi_file_hints, file->info, info_used);
}

int spc_mpi_file_set_info(MPI_File fh, MPI_Info info) {
    spc_mpi_file_t *file;
    SPC_MPI_TRY(spc_mpi_get_file(fh, &file));
    return spc_mpi_hints_set(spc_mpi_file_hints, info, &file->info);
}

int spc_mpi_file_set_atomicity(MPI_File fh, int flag) {
    spc_mpi_file_t *file;
    SPC_MPI_TRY(spc_mpi_get_file(fh, &file));
    file->is_atomic = flag != 0;
    return MPI_SUCCESS;
}

int spc_mpi_file_get_atomicity(MPI_File fh, int *flag) {
    spc_mpi_file_t *file;
    SPC_MPI_TRY(spc_mpi_get_file(fh, &file));
    *flag = file->is_atomic;
    return MPI_SUCCESS;
}

int spc_mpi_file_get_type_extent(MPI_File fh, MPI_Datatype datatype, MPI_Count *extent) {
    spc_mpi_file_t *file;
    spc_mpi_type_t *type;
    SPC_MPI_TRY(spc_mpi_get_file(fh, &file));
    SPC_MPI_TRY(spc_mpi_get_type(file->comm, datatype, &type));
    *extent = type->extent;
    return MPI_SUCCESS;
}

/* ---- views ---- */

/* spc_mpi_take_run_t: the place of the first byte. */
static int note_place(void *argument, MPI_Count at, MPI_Count bytes) {
    (void)bytes;
    *(MPI_Offset *)argument = at;
    return MPI_SUCCESS;
}

static int byte_offset(const spc_mpi_file_t *file, MPI_Offset offset, MPI_Offset *place) {
    MPI_Offset at = 0;
    if (offset < 0) {
        return spc_mpi_fail(file->comm, MPI_ERR_ARG, "%s: offset=%lld: an offset is 0 or more", file->name,
                            offset);
    }
    SPC_MPI_TRY(spc_mpi_type_walk(file->filetype, offset * file->etype->size, 1, note_place, &at));
    *place = file->disp + at;
    return MPI_SUCCESS;
}

int spc_mpi_file_get_byte_offset(MPI_File fh, MPI_Offset offset, MPI_Offset *disp) {
    spc_mpi_file_t *file;
    SPC_MPI_TRY(spc_mpi_get_file(fh, &file));
    return byte_offset(file, offset, disp);
}

/* ---- data representations of the program's own: those that are the native one under another name ---- */

typedef struct datarep {
    char name[MPI_MAX_DATAREP_STRING];
    bool converts;
    MPI_Datarep_extent_function *extent;
    void *extra_state;
    struct datarep *next;
} datarep_t;

static pthread_mutex_t datarep_lock = PTHREAD_MUTEX_INITIALIZER;
static datarep_t *datareps; /* with the lock; they are never changed or freed */

static bool is_predefined(const char *name) {
    return strcmp(name, "native") == 0 || strcmp(name, "internal") == 0 || strcmp(name, "external32") == 0;
}

static const datarep_t *find_datarep(const char *name) {
    pthread_mutex_lock(&datarep_lock);
    const datarep_t *found = datareps;
    while (found != NULL && strcmp(found->name, name) != 0) {
        found = found->next;
    }
    pthread_mutex_unlock(&datarep_lock);
    return found;
}

static int register_datarep(const char *name, bool converts, MPI_Datarep_extent_function *extent,
                            void *extra_state) {
    const MPI_Errhandler errhandler = get_default();
    const intptr_t none = (intptr_t)MPI_FILE_NULL;
    if (strlen(name) >= MPI_MAX_DATAREP_STRING || extent == NULL) {
        return spc_mpi_fail_by(
            errhandler, SPC_MPI_FILE, none, MPI_ERR_ARG,
            "'%s': a data representation has an extent function, and a name of fewer than %d "
            "characters",
            name, MPI_MAX_DATAREP_STRING);
    }
    if (is_predefined(name) || find_datarep(name) != NULL) {
        return spc_mpi_fail_by(errhandler, SPC_MPI_FILE, none, MPI_ERR_DUP_DATAREP,
                               "there is a data representation '%s' already", name);
    }
    datarep_t *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return spc_mpi_fail_by(errhandler, SPC_MPI_FILE, none, MPI_ERR_NO_MEM,
                               "there is no memory for a data representation");
    }
    *made = (datarep_t){.converts = converts, .extent = extent, .extra_state = extra_state};
    (void)snprintf(made->name, sizeof(made->name), "%s", name);
    pthread_mutex_lock(&datarep_lock);
    made->next = datareps;
    datareps = made;
    pthread_mutex_unlock(&datarep_lock);
    return MPI_SUCCESS;
}

int spc_mpi_register_datarep(const char *datarep, MPI_Datarep_conversion_function *read_conversion_fn,
                             MPI_Datarep_conversion_function *write_conversion_fn,
                             MPI_Datarep_extent_function *dtype_file_extent_fn, void *extra_state) {
    const bool converts =
        read_conversion_fn != MPI_CONVERSION_FN_NULL || write_conversion_fn != MPI_CONVERSION_FN_NULL;
    return register_datarep(datarep, converts, dtype_file_extent_fn, extra_state);
}

int spc_mpi_register_datarep_c(const char *datarep, MPI_Datarep_conversion_function_c *read_conversion_fn,
                               MPI_Datarep_conversion_function_c *write_conversion_fn,
                               MPI_Datarep_extent_function *dtype_file_extent_fn, void *extra_state) {
    const bool converts =
        read_conversion_fn != MPI_CONVERSION_FN_NULL_C || write_conversion_fn != MPI_CONVERSION_FN_NULL_C;
    return register_datarep(datarep, converts, dtype_file_extent_fn, extra_state);
}

static bool has_native_extent(const datarep_t *datarep, const spc_mpi_type_t *type) {
    MPI_Aint extent = 0;
    return datarep->extent(type->handle, &extent, datarep->extra_state) == MPI_SUCCESS
           && extent == type->extent;
}

/* MPI_ERR_UNSUPPORTED_DATAREP if data of these types would have to be converted. */
static int check_datarep(const spc_mpi_file_t *file, const spc_mpi_type_t *etype,
                         const spc_mpi_type_t *filetype, const char *name) {
    const datarep_t *own = find_datarep(name);
    if (is_predefined(name)) {
        return MPI_SUCCESS;
    }
    if (own == NULL) {
        return spc_mpi_fail(file->comm, MPI_ERR_UNSUPPORTED_DATAREP,
                            "%s: datarep is '%s'; there are 'native', 'internal' and 'external32'",
                            file->name, name);
    }
    if (own->converts || !has_native_extent(own, etype) || !has_native_extent(own, filetype)) {
        return spc_mpi_fail(file->comm, MPI_ERR_UNSUPPORTED_DATAREP,
                            "%s: datarep '%s' converts data or changes extents, which spcomm cannot do; one "
                            "that does neither works",
                            file->name, name);
    }
    return MPI_SUCCESS;
}

/* ---- views ---- */

typedef struct order {
    MPI_Count last, end; /* the first byte of the last run, and the one after all so far */
    bool may_overlap;
} order_t;

/* spc_mpi_take_run_t: MPI_ERR_IO unless the run lies behind those before. */
static int note_order(void *argument, MPI_Count at, MPI_Count bytes) {
    order_t *order = argument;
    const MPI_Count least = order->may_overlap ? order->last : order->end;
    order->last = at;
    order->end = at + bytes > order->end ? at + bytes : order->end;
    return at < least ? MPI_ERR_IO : MPI_SUCCESS;
}

/* Bytes of a file that a type places twice may be read, but not written. */
static int check_order(const spc_mpi_file_t *file, const char *role, const spc_mpi_type_t *type) {
    order_t order = {.may_overlap = (file->amode & MPI_MODE_RDONLY) != 0};
    const int code = spc_mpi_type_walk(type, 0, type->size, note_order, &order);
    return code == MPI_SUCCESS
               ? MPI_SUCCESS
               : spc_mpi_fail(file->comm, code,
                              "%s: the displacements in the %s of a view are 0 or more, each behind the one "
                              "before, without overlaps if the file is written; %lld does not continue so",
                              file->name, role, (long long)order.last);
}

static int check_view(const spc_mpi_file_t *file, MPI_Offset disp, const spc_mpi_type_t *etype,
                      const spc_mpi_type_t *filetype, const char *datarep) {
    if (disp < 0) {
        return spc_mpi_fail(file->comm, MPI_ERR_ARG, "%s: disp=%lld: a displacement is 0 or more", file->name,
                            disp);
    }
    if (etype->size <= 0 || filetype->size % etype->size != 0) {
        return spc_mpi_fail(file->comm, MPI_ERR_ARG,
                            "%s: a filetype of %lld bytes does not consist of etypes of %lld bytes",
                            file->name, (long long)filetype->size, (long long)etype->size);
    }
    SPC_MPI_TRY(check_order(file, "etype", etype));
    SPC_MPI_TRY(check_order(file, "filetype", filetype));
    return check_datarep(file, etype, filetype, datarep);
}

/* A sequential file has only the shared pointer, which no node moves between two barriers. */
static int current_place(const spc_mpi_file_t *file, MPI_Offset *place) {
    SPC_MPI_TRY(spc_mpi_barrier_inside(file->comm));
    MPI_Offset at = file->position;
    if (file->shared != NULL || file->pointer >= 0) {
        SPC_MPI_TRY(spc_mpi_file_add_shared(file, 0, &at));
    }
    return byte_offset(file, at, place);
}

int spc_mpi_file_set_view(MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype,
                          const char *datarep, MPI_Info info) {
    spc_mpi_file_t *file;
    spc_mpi_type_t *elements, *tile;
    SPC_MPI_TRY(spc_mpi_get_file(fh, &file));
    SPC_MPI_TRY(spc_mpi_get_type(file->comm, etype, &elements));
    SPC_MPI_TRY(spc_mpi_get_type(file->comm, filetype, &tile));
    if (disp == MPI_DISPLACEMENT_CURRENT && (file->amode & MPI_MODE_SEQUENTIAL) != 0) {
        SPC_MPI_TRY(current_place(file, &disp));
    }
    SPC_MPI_TRY(check_view(file, disp, elements, tile, datarep));
    SPC_MPI_TRY(spc_mpi_hints_set(spc_mpi_file_hints, info, &file->info));
    SPC_MPI_TRY(spc_mpi_barrier_inside(file->comm));
    spc_mpi_type_retain(elements);
    spc_mpi_type_retain(tile);
    spc_mpi_type_release(file->etype);
    spc_mpi_type_release(file->filetype);
    file->disp = disp;
    file->etype = elements;
    file->filetype = tile;
    file->position = 0;
    file->is_external = strcmp(datarep, "external32") == 0;
    (void)snprintf(file->representation, sizeof(file->representation), "%s", datarep);
    if (file->comm->rank == 0 && (file->shared != NULL || file->pointer >= 0)) {
        SPC_MPI_TRY(spc_mpi_file_set_shared(file, 0));
    }
    return spc_mpi_barrier_inside(file->comm);
}

static int give_type(const spc_mpi_type_t *type, MPI_Datatype *handle) {
    *handle = type->handle;
    return type->is_builtin ? MPI_SUCCESS : spc_mpi_type_copy(type, handle);
}

int spc_mpi_file_get_view(MPI_File fh, MPI_Offset *disp, MPI_Datatype *etype, MPI_Datatype *filetype,
                          char *datarep) {
    spc_mpi_file_t *file;
    SPC_MPI_TRY(spc_mpi_get_file(fh, &file));
    *disp = file->disp;
    memcpy(datarep, file->representation, strlen(file->representation) + 1);
    SPC_MPI_TRY(give_type(file->etype, etype));
    return give_type(file->filetype, filetype);
}

/* ---- pointers ---- */

/* The end of the file, in etypes of the view: the etypes of the whole tiles before it, and those of the last tile up to
 * the last byte. */
static int find_end(const spc_mpi_file_t *file, MPI_Offset *end) {
    MPI_Offset size;
    const spc_mpi_type_t *tile = file->filetype;
    SPC_MPI_TRY(get_size(file, &size));
    const MPI_Offset bytes = size > file->disp ? size - file->disp : 0;
    if (tile->is_dense || tile->extent <= 0 || tile->size == 0) {
        *end = tile->size > 0 ? bytes / file->etype->size : 0;
        return MPI_SUCCESS;
    }
    MPI_Offset first = bytes / tile->extent * (tile->size / file->etype->size);
    MPI_Offset place = 0;
    do { /* within the last tile */
        SPC_MPI_TRY(byte_offset(file, first, &place));
        first += place < size;
    } while (place < size);
    *end = first;
    return MPI_SUCCESS;
}

static int find_position(const spc_mpi_file_t *file, MPI_Offset offset, int whence, MPI_Offset now,
                         MPI_Offset *to) {
    MPI_Offset from = 0;
    if (whence == MPI_SEEK_END) {
        SPC_MPI_TRY(find_end(file, &from));
    } else if (whence == MPI_SEEK_CUR) {
        from = now;
    } else if (whence != MPI_SEEK_SET) {
        return spc_mpi_fail(file->comm, MPI_ERR_ARG,
                            "%s: whence=%d: it is MPI_SEEK_SET, MPI_SEEK_CUR or MPI_SEEK_END", file->name,
                            whence);
    }
    if (from + offset < 0) {
        return spc_mpi_fail(file->comm, MPI_ERR_ARG,
                            "%s: position %lld lies before the beginning of the file", file->name,
                            from + offset);
    }
    *to = from + offset;
    return MPI_SUCCESS;
}

int spc_mpi_file_seek(MPI_File fh, MPI_Offset offset, int whence) {
    spc_mpi_file_t *file;
    SPC_MPI_TRY(spc_mpi_get_file(fh, &file));
    return find_position(file, offset, whence, file->position, &file->position);
}

int spc_mpi_file_get_position(MPI_File fh, MPI_Offset *offset) {
    spc_mpi_file_t *file;
    SPC_MPI_TRY(spc_mpi_get_file(fh, &file));
    *offset = file->position;
    return MPI_SUCCESS;
}

int spc_mpi_file_seek_shared(MPI_File fh, MPI_Offset offset, int whence) {
    spc_mpi_file_t *file;
    MPI_Offset now, to = 0;
    SPC_MPI_TRY(spc_mpi_get_file(fh, &file));
    SPC_MPI_TRY(spc_mpi_file_check_shared(file));
    SPC_MPI_TRY(spc_mpi_barrier_inside(file->comm));
    SPC_MPI_TRY(spc_mpi_file_add_shared(file, 0, &now));
    SPC_MPI_TRY(find_position(file, offset, whence, now, &to));
    SPC_MPI_TRY(spc_mpi_barrier_inside(file->comm));
    if (file->comm->rank == 0) {
        SPC_MPI_TRY(spc_mpi_file_set_shared(file, to));
    }
    return spc_mpi_barrier_inside(file->comm);
}

int spc_mpi_file_get_position_shared(MPI_File fh, MPI_Offset *offset) {
    spc_mpi_file_t *file;
    SPC_MPI_TRY(spc_mpi_get_file(fh, &file));
    SPC_MPI_TRY(spc_mpi_file_check_shared(file));
    return spc_mpi_file_add_shared(file, 0, offset);
}

/* ---- error handlers ---- */

int spc_mpi_file_create_errhandler(MPI_File_errhandler_function *file_errhandler_fn,
                                   MPI_Errhandler *errhandler) {
    return spc_mpi_errhandler_make(*(void **)&file_errhandler_fn, errhandler);
}

int spc_mpi_file_set_errhandler(MPI_File handle, MPI_Errhandler errhandler) {
    spc_mpi_file_t *file;
    SPC_MPI_TRY(spc_mpi_check_errhandler(errhandler));
    if (handle == MPI_FILE_NULL) {
        default_errhandler = errhandler;
        has_default = true;
        return MPI_SUCCESS;
    }
    SPC_MPI_TRY(spc_mpi_get_file(handle, &file));
    file->comm->errhandler = errhandler;
    return MPI_SUCCESS;
}

int spc_mpi_file_get_errhandler(MPI_File handle, MPI_Errhandler *errhandler) {
    spc_mpi_file_t *file;
    if (handle == MPI_FILE_NULL) {
        *errhandler = get_default();
        return MPI_SUCCESS;
    }
    SPC_MPI_TRY(spc_mpi_get_file(handle, &file));
    *errhandler = file->comm->errhandler;
    return MPI_SUCCESS;
}

int spc_mpi_file_call_errhandler(MPI_File fh, int errorcode) {
    spc_mpi_file_t *file;
    if (fh == MPI_FILE_NULL) {
        return spc_mpi_raise(get_default(), (intptr_t)fh, errorcode);
    }
    SPC_MPI_TRY(spc_mpi_get_file(fh, &file));
    return spc_mpi_raise(file->comm->errhandler, (intptr_t)fh, errorcode);
}
