/* SPDX-License-Identifier: MIT */
/*
 * spc_mpi_diagnose: lines of the program's calls, for reports; elements of another type than the receive's; messages
 * that nearly match.
 *
 * In C a call leaves its line in spcomm_mpi_here, and noting it takes two stores. In Python finding it takes some
 * microseconds; a process does that for its first SPC_MPI_PLACES calls that note one, for those that are rare, and with
 * --strict for all. Lines that were not noted are left out of reports.
 */
#ifndef SPC_MPI_DIAGNOSE_H
#define SPC_MPI_DIAGNOSE_H

#include "mpi/type/spc_mpi_type.h"

enum {
    SPC_MPI_PLACES = 256,
    SPC_MPI_SENDS = 32, /* first sends of a process whose lines are kept for their receivers */
};

/* A line of the program. */
typedef struct spc_mpi_place {
    const char *file; /* NULL: not known */
    int32_t line;
    char name[SPC_MPI_PLACE_BYTES]; /* of the file, in Python */
} spc_mpi_place_t;

extern _Atomic int spc_mpi_places_left; /* relaxed: a hint */

void spc_mpi_place_find(spc_mpi_place_t *place); /* with no lock held */

/* Notes the line that made this call. `is_rare`: notes it also after the first ones. Called with no lock held. */
static inline void spc_mpi_place_note(spc_mpi_place_t *place, bool is_rare) {
    place->file = spcomm_mpi_here.file;
    place->line = spcomm_mpi_here.line;
    if (place->file == NULL
        && (is_rare || atomic_load_explicit(&spc_mpi_places_left, memory_order_relaxed) > 0
            || spc_mpi.is_strict)) {
        spc_mpi_place_find(place);
    }
}

/* " at ring.py:12", or nothing. Returns `text`. */
const char *spc_mpi_place_text(const spc_mpi_place_t *place, char text[SPC_MPI_PLACE_BYTES]);

/* "MPI_Recv", in Python "Recv". */
const char *spc_mpi_call_word(const char *call);

/* ---- sends: kept in the node's notes, where receivers and the launcher read them ---- */

/* The number of further sends that keep their lines; with --strict all do. At 0 the kept lines are forgotten, since
 * later sends may come from elsewhere. */
extern _Atomic int spc_mpi_sends_left;

void spc_mpi_note_send(const spc_mpi_comm_t *comm, int32_t destination, int tag, uint8_t format);

/* ---- elements of another type than expected ---- */

/* Stands for the format of a message from mpi4py's send() that a receive of numbers takes. */
#define SPC_MPI_PICKLED 0x3f

/* The format of a message whose elements are of another type than those of the receive; 0: they are as expected.
 * `has_data`: they are in the message. */
uint8_t spc_mpi_find_unexpected(const spc_message_t *message, const spc_mpi_type_t *type, bool has_data);

static inline uint8_t spc_mpi_unexpected(const spc_message_t *message, const spc_mpi_type_t *type,
                                         bool has_data) {
    return __builtin_expect(message->format == spc_mpi_format(type), 1)
               ? 0
               : spc_mpi_find_unexpected(message, type, has_data);
}

typedef struct spc_mpi_mismatch {
    const spc_mpi_comm_t *comm;
    const spc_mpi_type_t *type;
    int source;
    int tag; /* negative: within a collective */
    uint8_t format;
    const spc_mpi_place_t *place; /* of the receive; NULL: this call */
} spc_mpi_mismatch_t;

/* A warning, once for each pair of types; with --strict MPI_ERR_TYPE. */
int spc_mpi_note_mismatch(const spc_mpi_mismatch_t *mismatch);

/* In a collective, `source` gave fewer bytes than this node's arguments say. A warning, once for each call of MPI; with
 * --strict MPI_ERR_TRUNCATE. */
int spc_mpi_note_short(const spc_mpi_comm_t *comm, int source, MPI_Count bytes, MPI_Count room);

/* ---- receives that fail ---- */

/* MPI_SUCCESS for SPC_OK; else fails with the core's explanation, and names a message that has come and nearly matches.
 * */
int spc_mpi_check_receive(const spc_mpi_comm_t *comm, int source, int tag, int status);

/* "; a message of rank 1 with tag 5 is here, and ...", or nothing. */
void spc_mpi_near_text(const spc_mpi_comm_t *comm, int source, int tag, char *text, size_t room);

#endif
