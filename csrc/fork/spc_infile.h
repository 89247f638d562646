/* SPDX-License-Identifier: MIT */
/*
 * spc_infile: the file that gives the numbers of a start (SpeedesComm 2.1, `infile`).
 *
 *     # four nodes on this machine
 *     local_nodes = 4
 *     group_id = 1
 *     server = ""
 *
 * A subset of TOML: `key = value` lines, comments, blank lines. Keys (bare or quoted): local_nodes, total_nodes and
 * group_id, decimal integers from 0 to 2147483647 (`+4` and `1_000` are integers, too), and server, a string in double
 * quotes (without backslashes) or single quotes, of less than SPC_INFILE_SERVER_BYTES bytes. What this reader accepts,
 * any TOML reader does, and finds the same in it; tables, floats and the like are refused with a sentence. The file is
 * UTF-8 of at most SPC_INFILE_MAX_BYTES bytes, with or without carriage returns.
 *
 * Anybody may call it; nothing is kept open. Python and C read files through it, so both say the same of a wrong one.
 */
#ifndef SPC_INFILE_H
#define SPC_INFILE_H

#include <stdint.h>

#define SPC_INFILE_SERVER_BYTES 256
#define SPC_INFILE_MAX_BYTES 65536
#define SPC_INFILE_MESSAGE_BYTES 1024 /* enough for any sentence; a longer path is shown by its end */

typedef struct spc_infile {
    int32_t local_nodes; /* 0: not given */
    int32_t total_nodes;
    int32_t group_id;
    char server[SPC_INFILE_SERVER_BYTES]; /* "": not given */
} spc_infile_t;

/* SPC_EINVAL: the file says something that is not allowed; SPC_ESYSTEM: it cannot be read, errno says why. Then
 * `message` has one sentence without full stop, "FILE:LINE: what was found; what is allowed", cut to fit. */
int spc_infile_read(const char *path, spc_infile_t *infile, char *message, uint64_t message_bytes);

#endif
