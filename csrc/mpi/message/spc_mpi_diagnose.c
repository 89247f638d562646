/* SPDX-License-Identifier: MIT */
#include "mpi/message/spc_mpi_diagnose.h"

#include "api/spc_api_binding.h"

_Atomic int spc_mpi_places_left = SPC_MPI_PLACES;
_Atomic int spc_mpi_sends_left = SPC_MPI_SENDS;

/* ---- places ---- */

void spc_mpi_place_find(spc_mpi_place_t *place) {
    atomic_fetch_sub_explicit(&spc_mpi_places_left, 1, memory_order_relaxed);
    place->line =
        spc_api_binding.locate != NULL ? spc_api_binding.locate(place->name, sizeof(place->name)) : 0;
    place->file = place->line != 0 ? place->name : NULL;
}

const char *spc_mpi_place_text(const spc_mpi_place_t *place, char text[SPC_MPI_PLACE_BYTES]) {
    text[0] = '\0';
    if (place->file != NULL) {
        const char *slash = strrchr(place->file, '/');
        /* A long name is cut, so that the line stays. */
        const int most = SPC_MPI_PLACE_BYTES - (int)sizeof(" at :-2147483648");
        (void)snprintf(text, SPC_MPI_PLACE_BYTES, " at %.*s:%d", most,
                       slash != NULL ? slash + 1 : place->file, place->line);
    }
    return text;
}

const char *spc_mpi_call_word(const char *call) {
    return spc_api_binding.core != NULL && strncmp(call, "MPI_", 4) == 0 ? call + 4 : call;
}

/* ---- sends ---- */

/* Rows are added and never changed, so a reader in another process finds a complete row, or none. */
static void add_row(const spc_mpi_comm_t *comm, const spc_note_sent_t *row) {
    const spc_note_shared_t *notes = comm->core->node->notes;
    const uint32_t count = atomic_load_explicit(&notes->sent_count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        if (memcmp(&notes->sent[i], row, sizeof(*row)) == 0) {
            return;
        }
    }
    spc_comm_note_sent(comm->core, row);
}

void spc_mpi_note_send(const spc_mpi_comm_t *comm, int32_t destination, int tag, uint8_t format) {
    spc_mpi_place_t place;
    spc_note_sent_t row = {
        .destination = spc_comm_rank_in_run(comm->core, (uint32_t)destination), .tag = tag, .format = format};
    if (!spc_mpi.is_strict && atomic_fetch_sub_explicit(&spc_mpi_sends_left, 1, memory_order_relaxed) <= 1) {
        atomic_store_explicit(&spc_mpi_sends_left, 0, memory_order_relaxed);
        spc_comm_forget_sent(comm->core);
        return;
    }
    spc_mpi_place_note(&place, true);
    if (place.file != NULL) {
        const size_t length = strlen(place.file), most = sizeof(row.file) - 1;
        row.line = (uint32_t)place.line;
        (void)snprintf(row.file, sizeof(row.file), "%s", place.file + (length > most ? length - most : 0));
        add_row(comm, &row);
    }
}

/* " at ring.py:7" */
static const char *place_of_send(const spc_mpi_mismatch_t *mismatch, char text[SPC_MPI_PLACE_BYTES]) {
    const spc_mpi_comm_t *comm = mismatch->comm;
    spc_note_sent_t row;
    text[0] = '\0';
    if (comm == NULL || mismatch->tag < 0
        || !spc_comm_sent_by(comm->core, (uint32_t)spc_mpi_to_core(comm, mismatch->source), mismatch->tag,
                             mismatch->format == SPC_MPI_PICKLED ? SPC_FORMAT_RAW : mismatch->format, &row)) {
        return text;
    }
    const spc_mpi_place_t place = {.file = row.file, .line = (int32_t)row.line};
    return spc_mpi_place_text(&place, text);
}

/* ---- elements of another type than expected ---- */

static const char *name_of(uint8_t format) {
    static const char *const names[SPC_TYPE_COUNT] = {
        [SPC_TYPE_INT8] = "int8",           [SPC_TYPE_INT16] = "int16",
        [SPC_TYPE_INT32] = "int32",         [SPC_TYPE_INT64] = "int64",
        [SPC_TYPE_UINT8] = "uint8",         [SPC_TYPE_UINT16] = "uint16",
        [SPC_TYPE_UINT32] = "uint32",       [SPC_TYPE_UINT64] = "uint64",
        [SPC_TYPE_FLOAT32] = "float32",     [SPC_TYPE_FLOAT64] = "float64",
        [SPC_TYPE_COMPLEX64] = "complex64", [SPC_TYPE_COMPLEX128] = "complex128",
        [SPC_TYPE_BOOL] = "bool",
    };
    const uint32_t core = format & (SPC_MPI_FORMAT - 1);
    if (format == SPC_MPI_PICKLED) {
        return "an object (by send)";
    }
    return (format & SPC_MPI_FORMAT) != 0 && core < SPC_TYPE_COUNT ? names[core] : NULL;
}

/* Bytes that begin and end as pickles of protocol 2 or later do. */
static bool is_pickled(const spc_message_t *message) {
    const uint64_t bytes = spc_message_data_bytes(message);
    const unsigned char *data = spc_message_data(message);
    return message->format == SPC_FORMAT_RAW && bytes >= 4 && data != NULL && data[0] == 0x80 && data[1] >= 2
           && data[1] <= 5 && data[bytes - 1] == '.';
}

/* Bytes without a type fit all types; signed and unsigned elements of one byte fit each other, since they are
 * characters. */
uint8_t spc_mpi_find_unexpected(const spc_message_t *message, const spc_mpi_type_t *type, bool has_data) {
    const char *sent = name_of(message->format);
    if (name_of(spc_mpi_format(type)) == NULL) {
        return 0;
    }
    if (sent == NULL) {
        return has_data && type->element->size > 1 && is_pickled(message) ? SPC_MPI_PICKLED : 0;
    }
    return type->element->size == 1 && strstr(sent, "int8") != NULL ? 0 : message->format;
}

static bool is_new_pair(const char *sent, const char *received) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static const char *noted[16][2];
    static int noted_count;
    pthread_mutex_lock(&lock);
    bool is_new = noted_count < 16;
    for (int i = 0; i < noted_count; i++) {
        is_new = is_new && !(noted[i][0] == sent && noted[i][1] == received);
    }
    if (is_new) {
        noted[noted_count][0] = sent;
        noted[noted_count++][1] = received;
    }
    pthread_mutex_unlock(&lock);
    return is_new;
}

int spc_mpi_note_mismatch(const spc_mpi_mismatch_t *mismatch) {
    const char *sent = name_of(mismatch->format), *received = name_of(spc_mpi_format(mismatch->type));
    const char *advice = mismatch->format == SPC_MPI_PICKLED
                             ? "send() and recv() take objects, Send() and Recv() arrays"
                             : "give both calls one type";
    char there[SPC_MPI_PLACE_BYTES], here[SPC_MPI_PLACE_BYTES];
    if (spc_mpi.is_strict) {
        return spc_mpi_fail(mismatch->comm, MPI_ERR_TYPE, "rank %d sent %s%s, and this call receives %s: %s",
                            mismatch->source, sent, place_of_send(mismatch, there), received, advice);
    }
    if (is_new_pair(sent, received)) {
        spc_mpi_place_t own;
        if (mismatch->place == NULL || mismatch->place->file == NULL) {
            spc_mpi_place_note(&own, true);
        }
        fprintf(stderr,
                "spcomm: warning: rank %d sent %s%s, and rank %d receives %s in %s%s: the bytes are taken as "
                "they are; %s\n",
                mismatch->source, sent, place_of_send(mismatch, there),
                mismatch->comm != NULL ? mismatch->comm->rank : 0, received, spc_mpi_call_word(spc_mpi_call),
                spc_mpi_place_text(
                    mismatch->place != NULL && mismatch->place->file != NULL ? mismatch->place : &own, here),
                advice);
    }
    return MPI_SUCCESS;
}

int spc_mpi_note_short(const spc_mpi_comm_t *comm, int source, MPI_Count bytes, MPI_Count room) {
#define SHORT \
    "rank %d gave %lld bytes, and this call takes %lld: counts and datatypes of the two do not match"
    if (spc_mpi.is_strict) {
        return spc_mpi_fail(comm, MPI_ERR_TRUNCATE, SHORT, source, (long long)bytes, (long long)room);
    }
    if (is_new_pair("short", spc_mpi_call)) {
        spc_mpi_place_t own;
        char here[SPC_MPI_PLACE_BYTES];
        spc_mpi_place_note(&own, true);
        fprintf(stderr,
                "spcomm: warning: rank %d in %s%s: " SHORT "; the rest of the buffer stays as it was\n",
                comm->rank, spc_mpi_call_word(spc_mpi_call), spc_mpi_place_text(&own, here), source,
                (long long)bytes, (long long)room);
    }
#undef SHORT
    return MPI_SUCCESS;
}

/* ---- receives that fail ---- */

void spc_mpi_near_text(const spc_mpi_comm_t *comm, int source, int tag, char *text, size_t room) {
    int32_t from = 0, label = 0;
    text[0] = '\0';
    const uint32_t count =
        spc_comm_near(comm->core, SPC_CONTEXT_USER,
                      source == MPI_ANY_SOURCE ? SPC_ANY_SOURCE : spc_mpi_to_core(comm, source),
                      tag == MPI_ANY_TAG ? SPC_ANY_TAG : tag, &from, &label);
    if (count == 0) {
        return;
    }
    const bool by_tag = source == MPI_ANY_SOURCE || spc_mpi_from_core(comm, from) == source;
    (void)snprintf(text, room, "; a message of rank %d with tag %d is here, and this waits for %s %d",
                   spc_mpi_from_core(comm, from), label, by_tag ? "tag" : "rank", by_tag ? tag : source);
}

int spc_mpi_check_receive(const spc_mpi_comm_t *comm, int source, int tag, int status) {
    if (__builtin_expect(status == SPC_OK, 1)) {
        return MPI_SUCCESS;
    }
    char call[64], from[16], label[16], near[SPC_MPI_PLACE_BYTES];
    (void)snprintf(from, sizeof(from), source == MPI_ANY_SOURCE ? "ANY" : "%d", source);
    (void)snprintf(label, sizeof(label), tag == MPI_ANY_TAG ? "ANY" : "%d", tag);
    (void)snprintf(call, sizeof(call), "recv(source=%s, tag=%s)", from, label);
    spc_mpi_near_text(comm, source, tag, near, sizeof(near));
    return spc_mpi_check_as(comm, status, call, near);
}
