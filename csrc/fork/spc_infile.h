/* SPDX-License-Identifier: MIT */
/*
 * spc_infile: the file that gives the numbers of a start (SpeedesComm 2.1, `infile`).
 *
 *     # three of five nodes, on this machine
 *     local_nodes = 3
 *     total_nodes = 5
 *     ranks = [0, 1, 3]
 *     server = "desk:7726"
 *     code = "code.txt"
 *
 * A small part of TOML: `key = value` lines, comments, blank lines. Keys: local_nodes, total_nodes, group_id and
 * timeout, decimal integers from 0 to 2147483647; server and code, strings in double quotes (without backslashes) or
 * single quotes, of less than SPC_INFILE_STRING_BYTES bytes; ranks, a list of different integers on one line. Any
 * reader of TOML finds the same values in such a file. The file has at most SPC_INFILE_MAX_BYTES bytes, with or without
 * carriage returns.
 *
 * Any thread may call it; it keeps nothing open. Python and C read files through it, so both report the same errors.
 */
#ifndef SPC_INFILE_H
#define SPC_INFILE_H

#include <stdint.h>

#define SPC_INFILE_STRING_BYTES 256
#define SPC_INFILE_RANKS 1024 /* as many as a run has nodes, at most */
#define SPC_INFILE_MAX_BYTES 65536
#define SPC_INFILE_MESSAGE_BYTES 1024 /* enough for any sentence; a longer path is shown by its end */

typedef struct spc_infile {
    int32_t local_nodes; /* 0: not given */
    int32_t total_nodes;
    int32_t group_id;
    int32_t timeout_s; /* for the other boxes to come */
    char server[SPC_INFILE_STRING_BYTES]; /* "": not given */
    char code[SPC_INFILE_STRING_BYTES]; /* the file that has the server's code */
    uint32_t rank_count; /* 0: not given */
    int32_t ranks[SPC_INFILE_RANKS]; /* of this machine's nodes */
} spc_infile_t;

/* SPC_EINVAL: the file holds something that is not allowed; SPC_ESYSTEM: it cannot be read, and errno has the reason.
 * Then `message` has one sentence without full stop, "FILE:LINE: what was found; what is allowed", cut to fit. */
int spc_infile_read(const char *path, spc_infile_t *infile, char *message, uint64_t message_bytes);

#endif
