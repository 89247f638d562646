/* SPDX-License-Identifier: MIT */
/* For programs in the paper's functions: checks, and what is thrown. */
#ifndef CHECK_HPP
#define CHECK_HPP

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unistd.h>

#include <spcomm/speedescomm.hpp>

#define CHECK(condition)                                                         \
    do {                                                                         \
        if (!(condition)) {                                                      \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            std::_Exit(1);                                                       \
        }                                                                        \
    } while (0)

/* The call throws this status, and its sentence contains this text. */
#define CHECK_THROWS(call, status, text)                                                                   \
    do {                                                                                                   \
        bool thrown = false;                                                                               \
        try {                                                                                              \
            call;                                                                                          \
        } catch (const SpCommError &error) {                                                               \
            thrown = true;                                                                                 \
            if (error.Status() != (status) || !std::strstr(error.what(), (text))) {                        \
                std::fprintf(stderr, "%s:%d: %d, %s\n", __FILE__, __LINE__, error.Status(), error.what()); \
                std::_Exit(1);                                                                             \
            }                                                                                              \
        }                                                                                                  \
        CHECK(thrown && #call);                                                                            \
    } while (0)

#endif
