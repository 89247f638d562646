/* SPDX-License-Identifier: MIT */
/* net_types: the module spcomm.net_types.net_types. */
#define SPCPY_NET_MODULE
#include "net_types.h"

/* ---- localize and foreign_count: over all elements of ours, in fields of structures, too */

typedef npy_intp (*visit_t)(const spcpy_net_kind_t *kind, char *memory, npy_intp stride, npy_intp count);

static npy_intp count_foreign(const spcpy_net_kind_t *kind, char *memory, npy_intp stride, npy_intp count) {
    return kind == &spcpy_net_int_kind ? spcpy_net_int_count_foreign(memory, stride, count)
                                       : spcpy_net_double_count_foreign(memory, stride, count);
}

static npy_intp put_in_order(const spcpy_net_kind_t *kind, char *memory, npy_intp stride, npy_intp count) {
    for (npy_intp i = 0; i < count; i++) {
        char *place = memory + i * stride;
        if (*place != SPCOMM_NET_FOREIGN) {
            continue;
        }
        if (kind == &spcpy_net_int_kind) {
            const npy_int32 value = spcomm_net_int_read(place);
            if (*place == SPCOMM_NET_FOREIGN) { /* it does not lie at a multiple of 8 */
                spcpy_net_int_pack(&value, place, stride, 1);
            }
        } else {
            spcomm_net_double_read(place);
        }
    }
    return 0;
}

static npy_intp visit_fields(PyArray_Descr *descr, char *memory, npy_intp stride, npy_intp count,
                             visit_t visit);

/* Elements of any dtype, `count` of them. */
static npy_intp visit_elements(PyArray_Descr *descr, char *memory, npy_intp stride, npy_intp count,
                               visit_t visit) {
    const spcpy_net_kind_t *kind = spcpy_net_kind_of(Py_TYPE(descr));
    if (kind != NULL) {
        return visit(kind, memory, stride, count);
    }
    if (PyDataType_SUBARRAY(descr) != NULL) {
        PyArray_Descr *base = PyDataType_SUBARRAY(descr)->base;
        const npy_intp bytes = PyDataType_ELSIZE(base), inner = bytes ? PyDataType_ELSIZE(descr) / bytes : 0;
        npy_intp found = 0;
        for (npy_intp i = 0; i < count; i++) {
            found += visit_elements(base, memory + i * stride, bytes, inner, visit);
        }
        return found;
    }
    return PyDataType_HASFIELDS(descr) ? visit_fields(descr, memory, stride, count, visit) : 0;
}

static npy_intp visit_fields(PyArray_Descr *descr, char *memory, npy_intp stride, npy_intp count,
                             visit_t visit) {
    PyObject *names = PyDataType_NAMES(descr), *fields = PyDataType_FIELDS(descr);
    npy_intp found = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
        PyObject *field = PyDict_GetItem(fields, PyTuple_GET_ITEM(names, i));
        const npy_intp offset = PyLong_AsSsize_t(PyTuple_GET_ITEM(field, 1));
        found += visit_elements((PyArray_Descr *)PyTuple_GET_ITEM(field, 0), memory + offset, stride, count,
                                visit);
    }
    return found;
}

static int has_ours(PyArray_Descr *descr) {
    if (PyDataType_SUBARRAY(descr) != NULL) {
        return has_ours(PyDataType_SUBARRAY(descr)->base);
    }
    if (spcpy_net_kind_of(Py_TYPE(descr)) != NULL) {
        return 1;
    }
    for (Py_ssize_t i = 0; PyDataType_HASFIELDS(descr) && i < PyTuple_GET_SIZE(PyDataType_NAMES(descr));
         i++) {
        PyObject *field =
            PyDict_GetItem(PyDataType_FIELDS(descr), PyTuple_GET_ITEM(PyDataType_NAMES(descr), i));
        if (has_ours((PyArray_Descr *)PyTuple_GET_ITEM(field, 0))) {
            return 1;
        }
    }
    return 0;
}

static int check_array(const char *function, PyObject *array) {
    if (!PyArray_Check(array)) {
        PyErr_Format(
            PyExc_TypeError,
            "%s(a): a is of type %s; it should be an array of spcomm.NET_INT or spcomm.NET_DOUBLE, or of "
            "structures that have such fields",
            function, Py_TYPE(array)->tp_name);
        return -1;
    }
    if (!has_ours(PyArray_DESCR((PyArrayObject *)array))) {
        PyErr_Format(
            PyExc_TypeError,
            "%s(a): a is an array of %S; only elements of spcomm.NET_INT and spcomm.NET_DOUBLE carry their "
            "byte order. Try a.view(...) if these are their bytes",
            function, PyArray_DESCR((PyArrayObject *)array));
        return -1;
    }
    return 0;
}

static npy_intp visit_array(PyArrayObject *array, visit_t visit) {
    PyArray_Descr *descr = PyArray_DESCR(array);
    if (PyArray_SIZE(array) == 0) {
        return 0;
    }
    NpyIter *iterator = NpyIter_New(array, NPY_ITER_READONLY | NPY_ITER_EXTERNAL_LOOP | NPY_ITER_REFS_OK,
                                    NPY_KEEPORDER, NPY_NO_CASTING, NULL);
    NpyIter_IterNextFunc *next = iterator == NULL ? NULL : NpyIter_GetIterNext(iterator, NULL);
    if (next == NULL) {
        if (iterator != NULL) {
            NpyIter_Deallocate(iterator);
        }
        if (!PyErr_Occurred()) { /* without memory for the iterator NumPy sets no error */
            PyErr_NoMemory();
        }
        return -1;
    }
    npy_intp found = 0;
    do {
        found += visit_elements(descr, NpyIter_GetDataPtrArray(iterator)[0],
                                NpyIter_GetInnerStrideArray(iterator)[0],
                                *NpyIter_GetInnerLoopSizePtr(iterator), visit);
    } while (next(iterator));
    return NpyIter_Deallocate(iterator) == NPY_SUCCEED ? found : -1;
}

PyDoc_STRVAR(
    localize_doc,
    "localize(a, /)\n--\n\n"
    "Put all elements of an array in this machine's byte order, where they lie.\n\n"
    "Parameters\n----------\na : numpy.ndarray\n"
    "    Writable, of any shape, of `NET_INT`, `NET_DOUBLE` or structures that have such fields.\n\n"
    "Returns\n-------\nnumpy.ndarray\n    `a` itself.\n\n"
    "Raises\n------\nTypeError\n    `a` is no such array.\nValueError\n"
    "    `a` is read-only, and some of its elements are foreign.\n\n"
    "Notes\n-----\n"
    "Never waits, copies nothing. One pass over the array; afterwards reading it never converts. Not "
    "needed:\n"
    "elements convert themselves whenever they are read.\n\nSpeedesComm 4.\n\n"
    "Examples\n--------\n>>> import numpy as np, spcomm\n"
    ">>> a = np.arange(3, dtype=spcomm.NET_INT).byteswap()    # as if the other kind of machine had sent it\n"
    ">>> spcomm.foreign_count(a), spcomm.foreign_count(spcomm.localize(a)), a\n"
    "(3, 0, array([0, 1, 2], dtype=NET_INT))\n");

static PyObject *localize(PyObject *Py_UNUSED(module), PyObject *array) {
    if (check_array("localize", array) < 0) {
        return NULL;
    }
    if (!PyArray_ISWRITEABLE((PyArrayObject *)array)) {
        const npy_intp foreign = visit_array((PyArrayObject *)array, count_foreign);
        if (foreign > 0) {
            PyErr_Format(PyExc_ValueError,
                         "localize(a): a is read-only, and %zd of its elements are foreign. They convert "
                         "when they are "
                         "read; localize(a.copy()) gives an array of this machine's",
                         (Py_ssize_t)foreign);
        }
        return foreign == 0 ? Py_NewRef(array) : NULL;
    }
    return visit_array((PyArrayObject *)array, put_in_order) < 0 ? NULL : Py_NewRef(array);
}

PyDoc_STRVAR(
    foreign_count_doc,
    "foreign_count(a, /)\n--\n\n"
    "How many elements of an array are still in the other kind of machine's byte order.\n\n"
    "Parameters\n----------\na : numpy.ndarray\n"
    "    Of any shape, of `NET_INT`, `NET_DOUBLE` or structures that have such fields; there each field "
    "counts.\n\n"
    "Returns\n-------\nint\n\n"
    "Raises\n------\nTypeError\n    `a` is no such array.\n\n"
    "Notes\n-----\nNever waits, copies and changes nothing. One pass over the array.\n\nSpeedesComm 4.\n\n"
    "Examples\n--------\n>>> import numpy as np, spcomm\n"
    ">>> a = np.arange(3, dtype=spcomm.NET_INT).byteswap()\n"
    ">>> spcomm.foreign_count(a), int(a[1]), spcomm.foreign_count(a)    # reading one has converted it\n"
    "(3, 1, 2)\n");

static PyObject *foreign_count(PyObject *Py_UNUSED(module), PyObject *array) {
    if (check_array("foreign_count", array) < 0) {
        return NULL;
    }
    const npy_intp found = visit_array((PyArrayObject *)array, count_foreign);
    return found < 0 ? NULL : PyLong_FromSsize_t(found);
}

/* ---- the module */

static PyMethodDef functions[] = {{"localize", localize, METH_O, localize_doc},
                                  {"foreign_count", foreign_count, METH_O, foreign_count_doc},
                                  {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "spcomm.net_types.net_types",
                                        .m_size = -1, .m_methods = functions};

static int add_kind(PyObject *module, const spcpy_net_kind_t *kind) {
    const char *scalar = strrchr(kind->scalar_name, '.') + 1;
    return PyModule_AddObjectRef(module, kind->name, (PyObject *)kind->descr) < 0
                   || PyModule_AddObjectRef(module, scalar, (PyObject *)kind->scalar) < 0
               ? -1
               : 0;
}

PyMODINIT_FUNC PyInit_net_types(void) {
    import_array();
    import_umath();
    if (spcpy_net_make_scalars() < 0 || spcpy_net_make_dtypes() < 0 || spcpy_net_add_promoters() < 0) {
        return NULL;
    }
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL) {
        return NULL;
    }
    if (add_kind(module, &spcpy_net_int_kind) < 0 || add_kind(module, &spcpy_net_double_kind) < 0) {
        Py_CLEAR(module);
    }
    return module;
}
