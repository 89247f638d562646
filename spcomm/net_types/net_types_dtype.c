/* SPDX-License-Identifier: MIT */
/*
 * net_types_dtype: the two DTypes, and the one descriptor of each, which programs call NET_INT and NET_DOUBLE.
 *
 * type_num is INT_MAX: with -1 np.einsum looks at what lies before its tables. The kind is 'V': with 'i' np.save of a
 * structure would write the raw bytes as int64.
 */
#include "net_types.h"

#include <limits.h>

static PyObject *name_of(PyObject *self) {
    return PyUnicode_FromString(spcpy_net_kind_of(Py_TYPE(self))->name);
}

/* By name: unpickled it is spcomm.NET_INT, the same object. */
static PyObject *reduce(PyObject *self, PyObject *Py_UNUSED(none)) {
    return name_of(self);
}

static PyObject *new_descr(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    if (PyTuple_GET_SIZE(arguments) != 0 || keywords != NULL) {
        return PyErr_Format(PyExc_TypeError, "%s() takes no arguments", type->tp_name);
    }
    return Py_NewRef(spcpy_net_kind_of(type)->descr);
}

static PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};

PyDoc_STRVAR(
    int_doc,
    "The dtype of integers of 32 bits that carry their byte order.\n\n"
    "Notes\n-----\n"
    "An element has 8 bytes: 4 of status, of which the first is ``L`` or ``B``, the byte order of the value, "
    "and\n"
    "4 of value; as C's ``spcomm_net_int_t`` and C++'s ``NET_INT``. All bytes 0 is the number 0. It may be "
    "a\n"
    "field of structures. An element is a `NetInt`; arithmetic gives int64. One that another kind of "
    "machine\n"
    "wrote reads right; reading it alone in a writable array also converts it there. Copies, messages and\n"
    "files keep the bytes. What does not fit into 32 bits is an OverflowError. Computing converts in small\n"
    "pieces, and makes no other copy. What NumPy cannot do with it: docs/howto/net_types.md.\n\n"
    "SpeedesComm 4.\n\n"
    "Examples\n--------\n>>> import numpy as np, spcomm\n"
    ">>> a = np.array([1, 258], spcomm.NET_INT)\n>>> a.nbytes, a.sum().dtype.name\n"
    "(16, 'int64')\n");

PyDoc_STRVAR(
    double_doc,
    "The dtype of doubles that carry their byte order.\n\n"
    "Notes\n-----\n"
    "An element has 16 bytes: 8 of status, of which the first is ``L`` or ``B``, the byte order of the "
    "value, and\n"
    "8 of value; as C's ``spcomm_net_double_t`` and C++'s ``NET_DOUBLE``. All else is as with `NET_INT`: an\n"
    "element is a `NetDouble`, and arithmetic gives float64. On free-threaded builds of Python reading one\n"
    "element converts without writing.\n\n"
    "SpeedesComm 4.\n\n"
    "Examples\n--------\n>>> import numpy as np, spcomm\n"
    ">>> a = np.array([1.5, 2.0], spcomm.NET_DOUBLE).byteswap()    # as if the other kind of machine had "
    "sent it\n"
    ">>> spcomm.foreign_count(a), float(a.sum())\n(2, 3.5)\n");

#define NET_DTYPE(name, doc)                                                                              \
    {                                                                                                     \
        {                                                                                                 \
            {                                                                                             \
                PyVarObject_HEAD_INIT(NULL, 0).tp_name = (name), .tp_basicsize = sizeof(PyArray_Descr),   \
                                            .tp_flags = Py_TPFLAGS_DEFAULT, .tp_new = new_descr,          \
                                            .tp_repr = name_of, .tp_str = name_of, .tp_methods = methods, \
                                            .tp_doc = (doc)                                               \
            }                                                                                             \
        }                                                                                                 \
    }

static PyArray_DTypeMeta int_dtype = NET_DTYPE("spcomm.NetIntDType", int_doc);
static PyArray_DTypeMeta double_dtype = NET_DTYPE("spcomm.NetDoubleDType", double_doc);

spcpy_net_kind_t spcpy_net_int_kind = {
    "NET_INT", "spcomm.NetInt", sizeof(spcomm_net_int_t), 4, 11, NPY_INT32, NPY_INT64, &int_dtype, NULL,
    NULL};
spcpy_net_kind_t spcpy_net_double_kind = {"NET_DOUBLE",
                                          "spcomm.NetDouble",
                                          sizeof(spcomm_net_double_t),
                                          8,
                                          32,
                                          NPY_DOUBLE,
                                          NPY_DOUBLE,
                                          &double_dtype,
                                          NULL,
                                          NULL};

spcpy_net_kind_t *spcpy_net_kind_of(const void *dtype) {
    return dtype == &int_dtype ? &spcpy_net_int_kind : dtype == &double_dtype ? &spcpy_net_double_kind : NULL;
}

/* ---- what NumPy asks a DType */

static PyArray_Descr *default_descr(PyArray_DTypeMeta *dtype) {
    return (PyArray_Descr *)Py_NewRef(spcpy_net_kind_of(dtype)->descr);
}

static PyArray_Descr *discover_descr(PyArray_DTypeMeta *dtype, PyObject *Py_UNUSED(object)) {
    return default_descr(dtype);
}

static PyArray_Descr *same_descr(PyArray_Descr *descr) {
    return (PyArray_Descr *)Py_NewRef(descr);
}

static PyArray_Descr *either_descr(PyArray_Descr *left, PyArray_Descr *Py_UNUSED(right)) {
    return same_descr(left);
}

/* With anything else it is what arithmetic makes of it, an int64 or a float64. */
static PyArray_DTypeMeta *common_dtype(PyArray_DTypeMeta *self, PyArray_DTypeMeta *other) {
    spcpy_net_kind_t *kind = spcpy_net_kind_of(self), *second = spcpy_net_kind_of(other);
    PyArray_Descr *wide = PyArray_DescrFromType(kind->wide);
    PyArray_Descr *other_wide = second == NULL ? NULL : PyArray_DescrFromType(second->wide);
    PyArray_DTypeMeta *found = NULL;
    if (wide != NULL && (second == NULL || other_wide != NULL)) {
        found = PyArray_CommonDType((PyArray_DTypeMeta *)Py_TYPE(wide),
                                    second == NULL ? other : (PyArray_DTypeMeta *)Py_TYPE(other_wide));
    }
    Py_XDECREF(wide);
    Py_XDECREF(other_wide);
    return found;
}

/* Where there is no array to ask whether one may write; else net_types_arrays_both.h. */
static PyObject *getitem(PyArray_Descr *descr, char *memory) {
    return PyDataType_GetArrFuncs(descr)->getitem(memory, NULL);
}

static int setitem(PyArray_Descr *descr, PyObject *object, char *memory) {
    return PyDataType_GetArrFuncs(descr)->setitem(object, memory, NULL);
}

/* Types of objects for setitem. By default NumPy casts its own numbers, so those too large for an int would wrap. */
static int is_known_scalar(PyArray_DTypeMeta *Py_UNUSED(dtype), PyTypeObject *type) {
    if (PyType_IsSubtype(type, &PyComplexFloatingArrType_Type)
        || PyType_IsSubtype(type, &PyTimedeltaArrType_Type)) {
        return 0; /* NumPy warns of the first, refuses the second */
    }
    return type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type || type == &PyComplex_Type
           || type == &PyUnicode_Type || type == &PyBytes_Type
           || PyType_IsSubtype(type, &PyIntegerArrType_Type)
           || PyType_IsSubtype(type, &PyInexactArrType_Type);
}

/* ---- making them */

static PyArray_Descr *make_descr(spcpy_net_kind_t *kind, npy_uint64 flags) {
    PyObject *nothing = PyTuple_New(0);
    PyArray_Descr *descr =
        nothing == NULL
            ? NULL
            : (PyArray_Descr *)PyArrayDescr_Type.tp_new((PyTypeObject *)kind->dtype, nothing, NULL);
    Py_XDECREF(nothing);
    if (descr == NULL) {
        return NULL;
    }
    descr->kind = 'V';
    descr->type = 'V';
    descr->byteorder = '|';
    descr->type_num = INT_MAX;
    descr->elsize = kind->element_bytes;
    descr->alignment = kind->alignment;
    descr->flags |= flags;
    return descr;
}

static int make_dtype(spcpy_net_kind_t *kind, PyArrayMethod_Spec **casts, npy_uint64 flags) {
    PyArray_DTypeMeta *dtype = kind->dtype;
    PyType_Slot slots[] = {{NPY_DT_default_descr, (void *)default_descr},
                           {NPY_DT_discover_descr_from_pyobject, (void *)discover_descr},
                           {_NPY_DT_is_known_scalar_type, (void *)is_known_scalar},
                           {NPY_DT_common_dtype, (void *)common_dtype},
                           {NPY_DT_common_instance, (void *)either_descr},
                           {NPY_DT_ensure_canonical, (void *)same_descr},
                           {NPY_DT_getitem, (void *)getitem},
                           {NPY_DT_setitem, (void *)setitem},
                           {0, NULL}};
    PyArrayDTypeMeta_Spec spec = {
        .typeobj = kind->scalar, .flags = NPY_DT_NUMERIC, .casts = casts, .slots = slots};
    Py_SET_TYPE((PyObject *)dtype, &PyArrayDTypeMeta_Type);
    ((PyTypeObject *)dtype)->tp_base = &PyArrayDescr_Type;
    if (casts == NULL || PyType_Ready((PyTypeObject *)dtype) < 0
        || PyArrayInitDTypeMeta_FromSpec(dtype, &spec) < 0) {
        return -1;
    }
    dtype->type_num = INT_MAX;
    kind->descr = make_descr(kind, flags | NPY_USE_GETITEM | NPY_USE_SETITEM);
    dtype->singleton = (PyArray_Descr *)Py_XNewRef(kind->descr);
    kind->scalar->tp_flags |= Py_TPFLAGS_IMMUTABLETYPE; /* not before: NumPy has set an attribute of it */
    return kind->descr == NULL ? -1 : 0;
}

/* net_scalars.py: teach_finfo(scalar, dtype) */
static int teach_finfo(const spcpy_net_kind_t *kind) {
    PyObject *module = PyImport_ImportModule("spcomm.net_types.net_scalars");
    PyObject *done =
        module == NULL ? NULL : PyObject_CallMethod(module, "teach_finfo", "OO", kind->scalar, kind->descr);
    Py_XDECREF(module);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

int spcpy_net_make_dtypes(void) {
    if (make_dtype(&spcpy_net_int_kind, spcpy_net_int_casts(), 0) < 0
        || make_dtype(&spcpy_net_double_kind, spcpy_net_double_casts(),
                      SPCPY_NET_DOUBLE_RETAGS ? NPY_NEEDS_PYAPI : 0)
               < 0) {
        return -1;
    }
    spcpy_net_int_set_functions(spcpy_net_int_kind.descr);
    spcpy_net_double_set_functions(spcpy_net_double_kind.descr);
    return teach_finfo(&spcpy_net_double_kind);
}
