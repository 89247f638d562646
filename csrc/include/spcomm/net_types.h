/* SPDX-License-Identifier: MIT */
/*
 * net_types: an int and a double that carry the byte order of the machine which wrote them, so that a structure made of
 * them may be copied with memcpy to a machine of the other order (SpeedesComm 4, NET_INT and NET_DOUBLE).
 *
 * For C11 and C++11; stands alone; inline functions, which any thread may call anywhere. The same bytes in C, in C++
 * (net_types.hpp) and in arrays of spcomm.NET_INT and spcomm.NET_DOUBLE:
 *
 *     NET_INT      status[4]  value (4 bytes)       8 bytes, aligned to 4
 *     NET_DOUBLE   status[8]  value (8 bytes)      16 bytes, aligned as a double
 *
 * status[0] is 'L' or 'B', the byte order of the value, little or big; the other bytes are 0, and never read. A value
 * is foreign if status[0] names the other order than this machine's. Anything else counts as this machine's own, so all
 * bytes zero is 0 on every machine.
 *
 * _value() converts and writes nothing. _read() also puts a foreign value in this machine's order where it lies: an
 * int in one compare-and-swap of 8 bytes, so any number of threads and processes may read it at once (one that does
 * not lie at a multiple of 8 stays as it is); a double in two steps, so meanwhile nobody else may touch it. Nothing
 * can fail.
 *
 *     struct order { spcomm_net_int_t number; spcomm_net_double_t price; };
 *     struct order mine = {spcomm_net_int_from(7), spcomm_net_double_from(1.5)};
 *     ... memcpy to any machine, in a message or a file ...
 *     double price = spcomm_net_double_read(&theirs.price);
 */
#ifndef SPCOMM_NET_TYPES_H
#define SPCOMM_NET_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define SPCOMM_NET_OWN 'L'
#define SPCOMM_NET_FOREIGN 'B'
#else
#define SPCOMM_NET_OWN 'B'
#define SPCOMM_NET_FOREIGN 'L'
#endif

typedef struct spcomm_net_int {
    char status[4];
    int32_t value;
} spcomm_net_int_t;

typedef struct spcomm_net_double {
    char status[8];
    double value;
} spcomm_net_double_t;

#ifdef __cplusplus
#define SPCOMM_NET_ASSERT static_assert
#else
#define SPCOMM_NET_ASSERT _Static_assert
#endif
SPCOMM_NET_ASSERT(sizeof(spcomm_net_int_t) == 8 && offsetof(spcomm_net_int_t, value) == 4, "travels");
SPCOMM_NET_ASSERT(sizeof(spcomm_net_double_t) == 16 && offsetof(spcomm_net_double_t, value) == 8, "travels");
#undef SPCOMM_NET_ASSERT

/* ---- ints */

/* This number, in this machine's order. */
static inline spcomm_net_int_t spcomm_net_int_from(int32_t value) {
    spcomm_net_int_t made = {{SPCOMM_NET_OWN, 0, 0, 0}, value};
    return made;
}

/* Whether the other kind of machine wrote it, and it is not converted yet. */
static inline bool spcomm_net_int_is_foreign(const spcomm_net_int_t *element) {
    return element->status[0] == SPCOMM_NET_FOREIGN;
}

/* The number. */
static inline int32_t spcomm_net_int_value(spcomm_net_int_t element) {
    if (!spcomm_net_int_is_foreign(&element)) {
        return element.value;
    }
    uint32_t bits;
    memcpy(&bits, &element.value, sizeof bits);
    bits = __builtin_bswap32(bits);
    memcpy(&element.value, &bits, sizeof bits);
    return element.value;
}

/* The same number as the other kind of machine writes it; of a foreign one as this machine does. */
static inline spcomm_net_int_t spcomm_net_int_byteswap(spcomm_net_int_t element) {
    const bool was_foreign = spcomm_net_int_is_foreign(&element);
    uint32_t bits;
    memcpy(&bits, &element.value, sizeof bits);
    bits = __builtin_bswap32(bits);
    spcomm_net_int_t swapped = {{was_foreign ? SPCOMM_NET_OWN : SPCOMM_NET_FOREIGN, 0, 0, 0}, 0};
    memcpy(&swapped.value, &bits, sizeof bits);
    return swapped;
}

typedef uint64_t __attribute__((may_alias)) spcomm_net_word_t;

/* Both halves at one moment, if the element lies at a multiple of 8. Pairs with the exchange of _read(). */
static inline spcomm_net_int_t spcomm_net_int_load(const void *memory) {
    spcomm_net_int_t element;
    if ((uintptr_t)memory % sizeof(uint64_t) == 0 && __atomic_always_lock_free(sizeof(uint64_t), 0)) {
        const uint64_t word = __atomic_load_n((const spcomm_net_word_t *)memory, __ATOMIC_RELAXED);
        memcpy(&element, &word, sizeof element);
    } else {
        memcpy(&element, memory, sizeof element);
    }
    return element;
}

/* The number; a foreign one is in this machine's order afterwards. The memory has to be writable. */
static inline int32_t spcomm_net_int_read(void *memory) {
    const spcomm_net_int_t seen = spcomm_net_int_load(memory);
    const int32_t value = spcomm_net_int_value(seen);
    if (spcomm_net_int_is_foreign(&seen) && (uintptr_t)memory % sizeof(uint64_t) == 0
        && __atomic_always_lock_free(sizeof(uint64_t), 0)) {
        const spcomm_net_int_t own = spcomm_net_int_from(value);
        uint64_t before, after;
        memcpy(&before, &seen, sizeof before);
        memcpy(&after, &own, sizeof after);
        /* Another thread was faster and has written this number, or a newer one, which stays. Nothing is published:
         * relaxed. */
        __atomic_compare_exchange_n((spcomm_net_word_t *)memory, &before, after, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED);
    }
    return value;
}

/* ---- doubles */

/* This number, in this machine's order. */
static inline spcomm_net_double_t spcomm_net_double_from(double value) {
    spcomm_net_double_t made = {{SPCOMM_NET_OWN, 0, 0, 0, 0, 0, 0, 0}, value};
    return made;
}

/* Whether the other kind of machine wrote it, and it is not converted yet. */
static inline bool spcomm_net_double_is_foreign(const spcomm_net_double_t *element) {
    return element->status[0] == SPCOMM_NET_FOREIGN;
}

/* Both halves, wherever they lie. */
static inline spcomm_net_double_t spcomm_net_double_load(const void *memory) {
    spcomm_net_double_t element;
    memcpy(&element, memory, sizeof element);
    return element;
}

/* The same number as the other kind of machine writes it; of a foreign one as this machine does. */
static inline spcomm_net_double_t spcomm_net_double_byteswap(spcomm_net_double_t element) {
    const bool was_foreign = spcomm_net_double_is_foreign(&element);
    uint64_t bits;
    memcpy(&bits, (const char *)&element + 8,
           sizeof bits); /* as bits: no register may change a foreign NaN */
    bits = __builtin_bswap64(bits);
    spcomm_net_double_t swapped = spcomm_net_double_from(0.0);
    swapped.status[0] = was_foreign ? SPCOMM_NET_OWN : SPCOMM_NET_FOREIGN;
    memcpy((char *)&swapped + 8, &bits, sizeof bits);
    return swapped;
}

/* The number. */
static inline double spcomm_net_double_value(spcomm_net_double_t element) {
    return spcomm_net_double_is_foreign(&element) ? spcomm_net_double_byteswap(element).value : element.value;
}

/* The number; a foreign one is in this machine's order afterwards. The memory has to be writable. */
static inline double spcomm_net_double_read(void *memory) {
    spcomm_net_double_t element = spcomm_net_double_load(memory);
    if (spcomm_net_double_is_foreign(&element)) {
        element = spcomm_net_double_byteswap(element);
        memcpy(memory, &element, sizeof element);
    }
    return element.value;
}

#endif
