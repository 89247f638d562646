/* SPDX-License-Identifier: MIT */
/*
 * net_types: what the files of this extension share. It makes NumPy dtypes of the two types of spcomm/net_types.h.
 *
 * Files: net_types.c (the module), _dtype (the DTypes and their descriptors), _access (elements in memory), _casts,
 * _arrays (what NumPy asks of old: sorting, argmax, nonzero, byteswap), _scalars (NetInt, NetDouble), _ufuncs
 * (promoters). A file named *_both.h is a template: a .c includes it twice, after net_types_int.h and after
 * net_types_double.h, and NET(name) is spcpy_net_int_name, then spcpy_net_double_name.
 *
 * All functions need the GIL (or, on free-threaded builds, an attached thread), but for those that say otherwise.
 * Those that return int: 0, or -1 with a Python error set.
 */
#ifndef SPCPY_NET_TYPES_H
#define SPCPY_NET_TYPES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL spcpy_net_array_api
#define PY_UFUNC_UNIQUE_SYMBOL spcpy_net_ufunc_api
#ifndef SPCPY_NET_MODULE
#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#endif
#include <numpy/arrayobject.h>
#include <numpy/dtype_api.h>
#include <numpy/ufuncobject.h>

#include "spcomm/net_types.h"

/* One of the two types, as NumPy sees it. */
typedef struct spcpy_net_kind {
    const char *name;        /* NET_INT */
    const char *scalar_name; /* spcomm.NetInt */
    int element_bytes, alignment, text_length;
    int like; /* NumPy's number of the type that it holds: NPY_INT32 */
    int wide; /* of the type that results of arithmetic have: NPY_INT64 */
    PyArray_DTypeMeta *dtype;
    PyTypeObject *scalar;
    PyArray_Descr *descr;
} spcpy_net_kind_t;

extern spcpy_net_kind_t spcpy_net_int_kind, spcpy_net_double_kind;

/* A double is put in order in two steps, so reading one writes only where the GIL keeps others away. */
#ifdef Py_GIL_DISABLED
#define SPCPY_NET_DOUBLE_RETAGS 0
#else
#define SPCPY_NET_DOUBLE_RETAGS 1
#endif

enum { NET_PIECE = 256 }; /* how many elements loops convert at a time, on the stack */

/* _dtype: makes both kinds ready, their casts and scalars too. */
int spcpy_net_make_dtypes(void);
/* The kind of a DType, a borrowed pointer; NULL, without an error: neither of the two. */
spcpy_net_kind_t *spcpy_net_kind_of(const void *dtype);

/* _access: `count` elements, `stride` bytes apart, wherever they lie. Need no GIL. */
void spcpy_net_int_unpack(const char *from, npy_intp stride, npy_intp count, npy_int32 *to);
void spcpy_net_int_pack(const npy_int32 *from, char *to, npy_intp stride, npy_intp count);
void spcpy_net_double_unpack(const char *from, npy_intp stride, npy_intp count, npy_double *to);
void spcpy_net_double_pack(const npy_double *from, char *to, npy_intp stride, npy_intp count);
npy_intp spcpy_net_int_count_foreign(const char *from, npy_intp stride, npy_intp count);
npy_intp spcpy_net_double_count_foreign(const char *from, npy_intp stride, npy_intp count);

/* _casts: the list of specifications for a DType, ended by NULL; static memory. NULL: failed. */
PyArrayMethod_Spec **spcpy_net_int_casts(void);
PyArrayMethod_Spec **spcpy_net_double_casts(void);

/* _arrays: fills in the functions of the descriptor. */
void spcpy_net_int_set_functions(PyArray_Descr *descr);
void spcpy_net_double_set_functions(PyArray_Descr *descr);

/* _scalars: the types; then new objects. */
int spcpy_net_make_scalars(void);
PyObject *spcpy_net_int_scalar(npy_int32 value);
PyObject *spcpy_net_double_scalar(npy_double value);
/* The number in any Python object, as NumPy's int32 and float64 take it. */
int spcpy_net_int_from_object(PyObject *object, npy_int32 *value);
int spcpy_net_double_from_object(PyObject *object, npy_double *value);

/* _ufuncs: lets all of NumPy's ufuncs compute with both types. */
int spcpy_net_add_promoters(void);

#endif
