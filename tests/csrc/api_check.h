/* SPDX-License-Identifier: MIT */
/*
 * api_check: checks for programs of the public interface, which know nothing but its headers. They are compiled with
 * the core as the other tests here, and once more, by tests/interfaces, with what `spcomm config` prints.
 *
 * Such a program joins the run it was started in; alone, it forks: three nodes, or as many as its argument says.
 */
#ifndef API_CHECK_H
#define API_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spcomm/spcomm.h"

/* _Exit: a node that fails does not finish in order, and its exit functions might wait. */
#define CHECK(condition)                                                                     \
    do {                                                                                     \
        if (!(condition)) {                                                                  \
            fprintf(stderr, "%s:%d: %s\n  last error: %s\n", __FILE__, __LINE__, #condition, \
                    spcomm_last_error());                                                    \
            _Exit(1);                                                                        \
        }                                                                                    \
    } while (0)

#define CHECK_OK(call) CHECK((call) == SPCOMM_OK)

/* The call fails with this status, and its sentence contains this text. */
#define CHECK_FAILS(call, status, text)                     \
    do {                                                    \
        CHECK((call) == (status));                          \
        CHECK(strstr(spcomm_last_error(), (text)) != NULL); \
    } while (0)

static inline spcomm_t *api_start(int argc, char **argv) {
    spcomm_t *comm = NULL;
    const char *watchdog = getenv("CHECK_TIMEOUT");
    alarm(watchdog != NULL ? (unsigned)atoi(watchdog) : 120);
    int nodes = getenv("SPCOMM_NODE") != NULL ? 0 : argc > 1 ? atoi(argv[1]) : 3;
    CHECK_OK(spcomm_startup(nodes, 0, 0, NULL, &comm));
    CHECK(comm != NULL && comm == spcomm_current());
    CHECK(getenv("SPCOMM_NODE") == NULL);
    return comm;
}

#endif
