/* SPDX-License-Identifier: MIT */
/*
 * Messages through spcomm's C API: the layer below Python (Gonzalez 2000, figure 5, has MPI above the adapter's own).
 *
 *   spcomm run -n 2 layers one_way|pingpong SIZE SECONDS BATCHES
 *
 * prints seconds per message, a line for each batch: one way with an acknowledgement of the last one, or half a round
 * trip. The same as `one_way` and `pingpong` of with_spcomm.py, with a buffer that stays the same.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <spcomm/spcomm.h>

#include "batches.h"

static spcomm_t *comm;
static bool pingpong;
static char *buffer;
static size_t size;

static void check(int status) {
    if (status != SPCOMM_OK) {
        fprintf(stderr, "%s\n", spcomm_last_error());
        exit(1);
    }
}

static void send_to(int32_t dest, spcomm_data_t data) {
    check(spcomm_send(comm, dest, 0, data, SPCOMM_FOREVER));
}

static spcomm_message_t receive_from(int32_t source) {
    spcomm_message_t message;
    check(spcomm_recv(comm, source, 0, SPCOMM_FOREVER, &message));
    return message;
}

static void receive_buffer(int32_t source) {
    spcomm_message_t message = receive_from(source);
    if (message.bytes != size) {
        fprintf(stderr, "a message of %zu bytes, not of %zu\n", (size_t)message.bytes, size);
        exit(1);
    }
    memcpy(buffer, message.data, size);
    spcomm_message_free(&message);
}

/* Node 0's part of `count` repetitions; node 1 is told how many first. */
static void batch(void *what, long count) {
    (void)what;
    send_to(1, spcomm_int64(count));
    for (long i = 0; i < count; i++) {
        send_to(1, spcomm_raw(buffer, size));
        if (pingpong) {
            receive_buffer(1);
        }
    }
    if (count > 0 && !pingpong) {
        spcomm_message_t message = receive_from(1);
        spcomm_message_free(&message);
    }
}

static void follow(void) {
    for (;;) {
        spcomm_message_t message = receive_from(0);
        int64_t count;
        memcpy(&count, message.data, sizeof count);
        spcomm_message_free(&message);
        if (count == 0) {
            return;
        }
        for (int64_t i = 0; i < count; i++) {
            receive_buffer(0);
            if (pingpong) {
                send_to(0, spcomm_raw(buffer, size));
            }
        }
        if (!pingpong) {
            send_to(0, spcomm_none());
        }
    }
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "layers one_way|pingpong SIZE SECONDS BATCHES\n");
        return 2;
    }
    pingpong = strcmp(argv[1], "pingpong") == 0;
    size = (size_t)atol(argv[2]);
    buffer = calloc(1, size);
    check(spcomm_startup(0, 0, 0, NULL, &comm));
    if (spcomm_rank(comm) == 0) {
        measure(batch, NULL, pingpong ? 2 : 1, atof(argv[3]), atoi(argv[4]));
        batch(NULL, 0);
    } else {
        follow();
    }
    free(buffer);
    return 0;
}
