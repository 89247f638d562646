/* SPDX-License-Identifier: MIT */
/*
 * net_types.hpp: NET_INT and NET_DOUBLE of SpeedesComm (section 4) for C++11 and later. They behave as int and
 * double in expressions, may be copied with memcpy to a machine of the other byte order, and convert themselves when
 * they are read. The bytes are those of net_types.h.
 *
 *     struct Order { NET_INT number; NET_DOUBLE price; };      // send it as it is
 *     theirs.number += 1;
 *
 * Reading an object puts a foreign value in this machine's order where it lies, as the paper says, also if the
 * object is const: so a foreign one may not lie in memory that cannot be written; Peek() reads there. Several
 * threads may read one NET_INT; a NET_DOUBLE that may be foreign only one at a time.
 *
 * Where all machines are of one kind, write before including this file, or give -DHETEROGENEOUS_DATA_TYPE=0:
 *
 *     #define HETEROGENEOUS_DATA_TYPE 0                         // NET_INT is int, NET_DOUBLE is double
 */
#ifndef SPCOMM_NET_TYPES_HPP
#define SPCOMM_NET_TYPES_HPP

#ifndef HETEROGENEOUS_DATA_TYPE
#define HETEROGENEOUS_DATA_TYPE 1
#endif

#if !HETEROGENEOUS_DATA_TYPE

typedef int NET_INT;
typedef double NET_DOUBLE;

#else

#include "spcomm/net_types.h"

/* `left op= right` as for a plain `number`: computed in the wider type of the two, then converted. */
#define SPCOMM_NET_ASSIGNMENT(Class, number, op)                                 \
    template <class Right> Class &operator op## = (const Right &right) {         \
        const typename spcomm_net::plain<Right>::type other = right;             \
        return *this = static_cast<number>(static_cast<number>(*this) op other); \
    }

#define SPCOMM_NET_STEP(Class, number, op) \
    Class &operator op() {                 \
        number result = *this;             \
        op result;                         \
        return *this = result;             \
    }                                      \
    number operator op(int) {              \
        const number before = *this;       \
        op *this;                          \
        return before;                     \
    }

class NET_INT;
class NET_DOUBLE;

namespace spcomm_net {
template <class T> struct plain {
    typedef T type;
};
template <> struct plain<NET_INT> {
    typedef int type;
};
template <> struct plain<NET_DOUBLE> {
    typedef double type;
};
} // namespace spcomm_net

class NET_INT {
  public:
    NET_INT() = default; /* undetermined, as an int is; NET_INT x{} is 0 */
    NET_INT(int value) : element_(spcomm_net_int_from(value)) {
    }
    operator int() const {
        return spcomm_net_int_read(&element_);
    }
    /* The number; nothing is written. */
    int Peek() const {
        return spcomm_net_int_value(spcomm_net_int_load(&element_));
    }
    /* Whether it has not been converted yet. */
    bool IsForeign() const {
        return spcomm_net_int_is_foreign(&element_);
    }
    SPCOMM_NET_STEP(NET_INT, int, ++)
    SPCOMM_NET_STEP(NET_INT, int, --)
    SPCOMM_NET_ASSIGNMENT(NET_INT, int, +)
    SPCOMM_NET_ASSIGNMENT(NET_INT, int, -)
    SPCOMM_NET_ASSIGNMENT(NET_INT, int, *)
    SPCOMM_NET_ASSIGNMENT(NET_INT, int, /)
    SPCOMM_NET_ASSIGNMENT(NET_INT, int, %)
    SPCOMM_NET_ASSIGNMENT(NET_INT, int, &)
    SPCOMM_NET_ASSIGNMENT(NET_INT, int, |)
    SPCOMM_NET_ASSIGNMENT(NET_INT, int, ^)
    SPCOMM_NET_ASSIGNMENT(NET_INT, int, <<)
    SPCOMM_NET_ASSIGNMENT(NET_INT, int, >>)

  private:
    mutable spcomm_net_int_t element_;
};

class NET_DOUBLE {
  public:
    NET_DOUBLE() = default;
    NET_DOUBLE(double value) : element_(spcomm_net_double_from(value)) {
    }
    operator double() const {
        return spcomm_net_double_read(&element_);
    }
    /* The number; nothing is written. */
    double Peek() const {
        return spcomm_net_double_value(spcomm_net_double_load(&element_));
    }
    /* Whether it has not been converted yet. */
    bool IsForeign() const {
        return spcomm_net_double_is_foreign(&element_);
    }
    SPCOMM_NET_STEP(NET_DOUBLE, double, ++)
    SPCOMM_NET_STEP(NET_DOUBLE, double, --)
    SPCOMM_NET_ASSIGNMENT(NET_DOUBLE, double, +)
    SPCOMM_NET_ASSIGNMENT(NET_DOUBLE, double, -)
    SPCOMM_NET_ASSIGNMENT(NET_DOUBLE, double, *)
    SPCOMM_NET_ASSIGNMENT(NET_DOUBLE, double, /)

  private:
    mutable spcomm_net_double_t element_;
};

#undef SPCOMM_NET_STEP
#undef SPCOMM_NET_ASSIGNMENT

#endif
#endif
