/* SPDX-License-Identifier: MIT */
/* net_types_casts: from and to NumPy's own DTypes. */
#include "net_types.h"

#include <fenv.h>
#include <math.h>

/*
 * A cast is two loops over pieces: elements to plain numbers, and these to the other type. NumPy's types by the middle
 * of their NPY_ names, with C's types; bool, half floats, complex numbers, objects and text have loops of their own.
 */
#define SPCPY_NET_NUMBERS(X)    \
    X(BYTE, npy_byte)           \
    X(UBYTE, npy_ubyte)         \
    X(SHORT, npy_short)         \
    X(USHORT, npy_ushort)       \
    X(INT, npy_int)             \
    X(UINT, npy_uint)           \
    X(LONG, npy_long)           \
    X(ULONG, npy_ulong)         \
    X(LONGLONG, npy_longlong)   \
    X(ULONGLONG, npy_ulonglong) \
    X(FLOAT, npy_float)         \
    X(DOUBLE, npy_double)       \
    X(LONGDOUBLE, npy_longdouble)

/* Their real part is first. */
#define SPCPY_NET_COMPLEX(X) \
    X(CFLOAT, npy_float)     \
    X(CDOUBLE, npy_double)   \
    X(CLONGDOUBLE, npy_longdouble)

/* The bits of a half float, rounded to even (IEEE 754, binary16). */
static npy_half half_from(double value) {
    const npy_half sign = signbit(value) ? 0x8000 : 0;
    int exponent;
    if (value != value) {
        return sign | 0x7e00;
    }
    const double size = fabs(value);
    if (size >= 65520.0) {
        if (!isinf(size)) {
            feraiseexcept(FE_OVERFLOW); /* NumPy warns of it */
        }
        return sign | 0x7c00;
    }
    if (size == 0.0) { /* has no exponent */
        return sign;
    }
    frexp(size, &exponent);
    const int least = exponent - 11 < -24 ? -24 : exponent - 11; /* the power of two of the last bit */
    const double units = nearbyint(ldexp(size, -least));
    /* 1024 units and more have the leading bit, which is not stored but adds 1 to the exponent. */
    return sign | (npy_half)(((least + 24) << 10) + (int)units);
}

static double half_value(npy_half bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double size = exponent == 0 ? ldexp(fraction, -24) : ldexp(fraction + 1024, exponent - 25);
    if (exponent == 31) {
        size = fraction ? NAN : INFINITY;
    }
    return bits & 0x8000 ? -size : size;
}

/* As safe as the cast between the types that the two stand for. */
static NPY_CASTING casting_between(int from, int to) {
    const NPY_CASTING levels[] = {NPY_SAFE_CASTING, NPY_SAME_KIND_CASTING};
    PyArray_Descr *first = PyArray_DescrFromType(from), *second = PyArray_DescrFromType(to);
    NPY_CASTING found = NPY_UNSAFE_CASTING;
    for (int i = 0; i < 2 && found == NPY_UNSAFE_CASTING; i++) {
        if (PyArray_CanCastTypeTo(first, second, levels[i])) {
            found = levels[i];
        }
    }
    Py_DECREF(first);
    Py_DECREF(second);
    return found;
}

/* As NumPy does; -1: warnings are errors. */
static int warn_of_complex(void) {
    PyObject *module = PyImport_ImportModule("numpy.exceptions");
    PyObject *category = module == NULL ? NULL : PyObject_GetAttrString(module, "ComplexWarning");
    const int status =
        category == NULL
            ? -1
            : PyErr_WarnEx(category, "complex numbers lose their imaginary part here; .real says so", 1);
    Py_XDECREF(module);
    Py_XDECREF(category);
    return status;
}

#include "net_types_int.h"

#include "net_types_casts_both.h"

#include "net_types_double.h"

#include "net_types_casts_both.h"
