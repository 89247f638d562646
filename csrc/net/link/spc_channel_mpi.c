/* SPDX-License-Identifier: MIT */
#include "net/link/spc_channel_mpi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/spc_error.h"

enum { SLOTS = 8, SLOT_BYTES = 1 << 16 };

/* A message on its way, in either direction. */
typedef struct slot {
    spc_mpi_handle_t request;
    bool is_pending;
    unsigned char bytes[SLOT_BYTES];
} slot_t;

typedef struct spc_channel_mpi {
    spc_channel_t channel; /* first: both addresses are the same */
    const spc_mpi_functions_t *mpi;
    spc_mpi_handle_t comm;
    int rank, tag;
    unsigned next_out, next_in;
    size_t unread_at, unread_bytes; /* of the slot next_in, whose message has come */
    bool has_posted;
    slot_t out[SLOTS], in[SLOTS];
} spc_channel_mpi_t;

/* ---- calls of MPI: true if they succeed */

static bool is_ok(int code) {
    if (code != 0) { /* MPI_SUCCESS */
        errno = EIO;
    }
    return code == 0;
}

/* Both functions take the same arguments. */
typedef int start_narrow_t(void *bytes, int count, int type, int rank, int tag, int comm, void *request);
typedef int start_wide_t(void *bytes, int count, void *type, int rank, int tag, void *comm, void *request);

static bool start(const spc_channel_mpi_t *end, spc_mpi_function_t *function, slot_t *slot, size_t length) {
    const spc_mpi_functions_t *mpi = end->mpi;
    const int count = (int)length;
    slot->is_pending =
        mpi->are_wide ? is_ok(((start_wide_t *)function)(slot->bytes, count, mpi->byte.wide, end->rank,
                                                         end->tag, end->comm.wide, &slot->request))
                      : is_ok(((start_narrow_t *)function)(slot->bytes, count, mpi->byte.narrow, end->rank,
                                                           end->tag, end->comm.narrow, &slot->request));
    return slot->is_pending;
}

typedef union status {
    max_align_t aligned;
    unsigned char bytes[SPC_MPI_STATUS_BYTES];
} status_t;

typedef int test_t(void *request, int *is_over, void *status);

/* `slot->is_pending` tells whether it is still on its way. */
static bool test(const spc_channel_mpi_t *end, slot_t *slot, status_t *status) {
    int is_over = 0;
    if (!is_ok(((test_t *)end->mpi->test)(&slot->request, &is_over, status))) {
        return false;
    }
    slot->is_pending = is_over == 0;
    return true;
}

typedef int count_narrow_t(const void *status, int type, int *count);
typedef int count_wide_t(const void *status, void *type, int *count);

static bool count(const spc_channel_mpi_t *end, const status_t *status, size_t *bytes) {
    const spc_mpi_functions_t *mpi = end->mpi;
    int found = 0;
    const bool is =
        is_ok(mpi->are_wide ? ((count_wide_t *)mpi->get_count)(status, mpi->byte.wide, &found)
                            : ((count_narrow_t *)mpi->get_count)(status, mpi->byte.narrow, &found));
    *bytes = is && found > 0 ? (size_t)found : 0;
    return is;
}

/* ---- reading */

static bool post(spc_channel_mpi_t *end) {
    bool is = true;
    for (unsigned i = 0; i < SLOTS && is && !end->has_posted; i++) {
        is = start(end, end->mpi->irecv, &end->in[i], SLOT_BYTES);
    }
    end->has_posted = is;
    return is;
}

/* True: the slot next_in has bytes, if any have come. */
static bool look(spc_channel_mpi_t *end) {
    slot_t *slot = &end->in[end->next_in];
    status_t status;
    if (end->unread_bytes != 0) {
        return true;
    }
    if (!test(end, slot, &status)) {
        return false;
    }
    end->unread_at = 0;
    return slot->is_pending || count(end, &status, &end->unread_bytes);
}

static bool take(spc_channel_mpi_t *end, unsigned char *buffer, size_t room_bytes, size_t *taken_bytes) {
    slot_t *slot = &end->in[end->next_in];
    const size_t bytes = end->unread_bytes < room_bytes ? end->unread_bytes : room_bytes;
    memcpy(buffer, slot->bytes + end->unread_at, bytes);
    end->unread_at += bytes;
    end->unread_bytes -= bytes;
    *taken_bytes += bytes;
    if (end->unread_bytes != 0) {
        return true;
    }
    end->next_in = (end->next_in + 1) % SLOTS;
    return start(end, end->mpi->irecv, slot, SLOT_BYTES);
}

static int mpi_read(spc_channel_t *channel, void *buffer, size_t room_bytes, size_t *got_bytes) {
    spc_channel_mpi_t *end = (spc_channel_mpi_t *)channel;
    size_t got = 0;
    bool is = post(end);
    while (is && got < room_bytes && (is = look(end)) && end->unread_bytes != 0) {
        is = take(end, (unsigned char *)buffer + got, room_bytes - got, &got);
    }
    *got_bytes = got;
    if (!is) {
        return SPC_ESYSTEM;
    }
    return got != 0 ? SPC_OK : SPC_EAGAIN;
}

static int mpi_has_unread(const spc_channel_t *channel) {
    return ((const spc_channel_mpi_t *)channel)->unread_bytes != 0;
}

/* ---- writing */

/* Copies bytes behind the first `skipped` ones of the pieces, and returns how many. */
static size_t gather(slot_t *slot, const spc_frame_piece_t *pieces, uint32_t count, size_t skipped) {
    size_t length = 0;
    for (uint32_t i = 0; i < count && length < SLOT_BYTES; i++) {
        const size_t passed = skipped < pieces[i].length_bytes ? skipped : pieces[i].length_bytes;
        const size_t left = pieces[i].length_bytes - passed, room = SLOT_BYTES - length;
        const size_t bytes = left < room ? left : room;
        skipped -= passed;
        if (bytes != 0) { /* an empty piece may have no address */
            memcpy(slot->bytes + length, (const unsigned char *)pieces[i].start + passed, bytes);
        }
        length += bytes;
    }
    return length;
}

static int mpi_write(spc_channel_t *channel, const spc_frame_piece_t *pieces, uint32_t count,
                     size_t *taken_bytes) {
    spc_channel_mpi_t *end = (spc_channel_mpi_t *)channel;
    size_t taken = 0;
    status_t status;
    for (;;) {
        slot_t *slot = &end->out[end->next_out];
        if (slot->is_pending && !test(end, slot, &status)) {
            return SPC_ESYSTEM;
        }
        const size_t length = slot->is_pending ? 0 : gather(slot, pieces, count, taken);
        if (length == 0) {
            *taken_bytes = taken;
            return taken != 0 ? SPC_OK : SPC_EAGAIN;
        }
        if (!start(end, end->mpi->isend, slot, length)) {
            return SPC_ESYSTEM;
        }
        taken += length;
        end->next_out = (end->next_out + 1) % SLOTS;
    }
}

/* ---- life */

static int mpi_descriptor(const spc_channel_t *channel) {
    (void)channel;
    return -1;
}

typedef int cancel_t(void *request);
typedef int wait_t(void *request, void *status);

static void mpi_destroy(spc_channel_t *channel) {
    spc_channel_mpi_t *end = (spc_channel_mpi_t *)channel;
    bool is_sending = false;
    status_t status;
    for (unsigned i = 0; i < SLOTS; i++) {
        slot_t *in = &end->in[i], *out = &end->out[i];
        if (in->is_pending && is_ok(((cancel_t *)end->mpi->cancel)(&in->request))) {
            (void)((wait_t *)end->mpi->wait)(&in->request, &status);
        }
        is_sending = is_sending || (out->is_pending && (!test(end, out, &status) || out->is_pending));
    }
    if (!is_sending) { /* else MPI still reads the slots: the other end has gone, and so will this process */
        free(end);
    }
}

static const spc_channel_methods_t mpi_methods = {mpi_read,    mpi_write, mpi_descriptor,
                                                  mpi_destroy, NULL,      mpi_has_unread};

int spc_channel_mpi_create(const spc_mpi_functions_t *mpi, spc_mpi_handle_t comm, int rank, int tag,
                           spc_channel_t **channel) {
    spc_channel_mpi_t *end = calloc(1, sizeof(*end));
    if (end == NULL) {
        return SPC_ENOMEM;
    }
    end->channel.methods = &mpi_methods;
    end->mpi = mpi;
    end->comm = comm;
    end->rank = rank;
    end->tag = tag;
    *channel = &end->channel;
    return SPC_OK;
}
