/* SPDX-License-Identifier: MIT */
/*
 * net_types_scalars: NetInt and NetDouble, one element as an object. They are Python's int and float with NumPy's
 * abstract types as a second base. So they have every protocol of numbers, and NumPy takes their DTypes for integers
 * and floats. (What has int alone is no number to np.mean; what derives from np.int32 crashed NumPy 2.0.)
 */
#include "net_types.h"

/* ---- the number in any object */

static int refuse_large(PyObject *object, PyObject *number) {
    PyObject *bits = PyObject_CallMethod(number, "bit_length", NULL);
    const long many = bits == NULL ? -1 : PyLong_AsLong(bits);
    Py_XDECREF(bits);
    if (many == -1 && PyErr_Occurred()) {
        return -1;
    }
    if (many > 1000) { /* Python refuses to write out long ones */
        PyErr_Format(PyExc_OverflowError,
                     "an integer of %ld bits does not fit into a NET_INT: it holds integers from %d to %d",
                     many, NPY_MIN_INT32, NPY_MAX_INT32);
        return -1;
    }
    PyErr_Format(PyExc_OverflowError, "%R does not fit into a NET_INT: it holds integers from %d to %d",
                 object, NPY_MIN_INT32, NPY_MAX_INT32);
    return -1;
}

/* NumPy lends the object from an array or a list, where the object's own code may replace it. */
int spcpy_net_int_from_object(PyObject *object, npy_int32 *value) {
    Py_INCREF(object);
    PyObject *number = PyLong_Check(object) ? Py_NewRef(object) : PyNumber_Long(object);
    if (number == NULL) {
        Py_DECREF(object);
        return -1;
    }
    int overflow;
    const long long found = PyLong_AsLongLongAndOverflow(number, &overflow);
    int status = found == -1 && PyErr_Occurred() ? -1 : 0;
    if (status == 0 && (overflow != 0 || found < NPY_MIN_INT32 || found > NPY_MAX_INT32)) {
        status = refuse_large(object, number);
    }
    Py_DECREF(number);
    Py_DECREF(object);
    *value = (npy_int32)found;
    return status;
}

int spcpy_net_double_from_object(PyObject *object, npy_double *value) {
    if (PyFloat_Check(object)) {
        *value = PyFloat_AS_DOUBLE(object);
        return 0;
    }
    Py_INCREF(object); /* as above */
    PyObject *number = PyNumber_Float(object);
    Py_DECREF(object);
    if (number == NULL) {
        return -1;
    }
    *value = PyFloat_AS_DOUBLE(number);
    Py_DECREF(number);
    return 0;
}

/* ---- new objects */

PyObject *spcpy_net_int_scalar(npy_int32 value) {
#if PYLONG_BITS_IN_DIGIT == 30 && PY_VERSION_HEX < 0x030F0000 && !defined(PYPY_VERSION)
    const npy_uint32 size = value < 0 ? 0u - (npy_uint32)value : (npy_uint32)value;
    const int digits = size >> 30 ? 2 : 1;
    PyLongObject *made = (PyLongObject *)PyType_GenericAlloc(spcpy_net_int_kind.scalar, digits);
    if (made == NULL) {
        return NULL;
    }
#if PY_VERSION_HEX >= 0x030C0000
    made->long_value.lv_tag = (uintptr_t)(size == 0 ? 0 : digits) << 3 | (value > 0 ? 0 : value == 0 ? 1 : 2);
    digit *to = made->long_value.ob_digit;
#else
    Py_SET_SIZE(made, size == 0 ? 0 : value < 0 ? -digits : digits);
    digit *to = made->ob_digit;
#endif
    to[0] = size & ((1u << 30) - 1);
    if (digits == 2) {
        to[1] = size >> 30;
    }
    return (PyObject *)made;
#else /* what int.__new__ does, for Pythons whose ints look otherwise */
    PyObject *arguments = Py_BuildValue("(l)", (long)value);
    PyObject *made =
        arguments == NULL ? NULL : PyLong_Type.tp_new(spcpy_net_int_kind.scalar, arguments, NULL);
    Py_XDECREF(arguments);
    return made;
#endif
}

PyObject *spcpy_net_double_scalar(npy_double value) {
    PyObject *made = PyType_GenericAlloc(spcpy_net_double_kind.scalar, 0);
    if (made != NULL) {
        ((PyFloatObject *)made)->ob_fval = value;
    }
    return made;
}

static int one_argument(const char *format, PyObject *arguments, PyObject *keywords, PyObject **given) {
    static char *names[] = {"", NULL};
    *given = NULL;
    return PyArg_ParseTupleAndKeywords(arguments, keywords, format, names, given) ? 0 : -1;
}

static PyObject *new_int(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    (void)type; /* nothing derives from it */
    PyObject *given;
    npy_int32 value = 0;
    if (one_argument("|O:NetInt", arguments, keywords, &given) < 0
        || (given != NULL && spcpy_net_int_from_object(given, &value) < 0)) {
        return NULL;
    }
    return spcpy_net_int_scalar(value);
}

static PyObject *new_double(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    (void)type;
    PyObject *given;
    npy_double value = 0.0;
    if (one_argument("|O:NetDouble", arguments, keywords, &given) < 0
        || (given != NULL && spcpy_net_double_from_object(given, &value) < 0)) {
        return NULL;
    }
    return spcpy_net_double_scalar(value);
}

static PyObject *reduce_int(PyObject *self, PyObject *Py_UNUSED(none)) {
    return Py_BuildValue("(O(l))", Py_TYPE(self), PyLong_AsLong(self));
}

static PyObject *reduce_double(PyObject *self, PyObject *Py_UNUSED(none)) {
    return Py_BuildValue("(O(d))", Py_TYPE(self), PyFloat_AS_DOUBLE(self));
}

/* It has no byte order; NumPy would swap bytes of the object. */
static PyObject *byteswap(PyObject *self, PyObject *Py_UNUSED(none)) {
    return Py_NewRef(self);
}

/* NumPy 2.0 would take a scalar of another's DType for a Python object, so what depends on the dtype is said here. */
static PyObject *dtype(PyObject *self, void *Py_UNUSED(closure)) {
    return Py_NewRef((PyObject *)(PyLong_Check(self) ? &spcpy_net_int_kind : &spcpy_net_double_kind)->descr);
}

static PyObject *size(PyObject *self, void *Py_UNUSED(closure)) {
    return PyLong_FromLong(
        (PyLong_Check(self) ? &spcpy_net_int_kind : &spcpy_net_double_kind)->element_bytes);
}

static PyObject *int_bytes(PyObject *self, PyObject *Py_UNUSED(none)) {
    const spcomm_net_int_t element = spcomm_net_int_from((npy_int32)PyLong_AsLong(self));
    return PyBytes_FromStringAndSize((const char *)&element, sizeof element);
}

static PyObject *double_bytes(PyObject *self, PyObject *Py_UNUSED(none)) {
    const spcomm_net_double_t element = spcomm_net_double_from(PyFloat_AS_DOUBLE(self));
    return PyBytes_FromStringAndSize((const char *)&element, sizeof element);
}

/* ---- the types */

PyDoc_STRVAR(
    int_doc,
    "NetInt(number=0, /)\n--\n\n"
    "One element of an array of `NET_INT`: an int of 32 bits that cannot be changed.\n\n"
    "Parameters\n----------\nnumber : int, float or str, optional\n    What ``int(number)`` takes.\n\n"
    "Raises\n------\nOverflowError\n    It does not fit into 32 bits.\n\n"
    "Notes\n-----\n"
    "An int for Python, so every operation of ints works and gives an int, which may be larger than 32 "
    "bits;\n"
    "a `numpy.integer` for NumPy. ``number.tobytes()`` are the 8 bytes that lie in arrays, and in C's\n"
    "``spcomm_net_int_t``.\n\nSpeedesComm 4.\n\n"
    "Examples\n--------\n>>> import spcomm\n>>> number = spcomm.NetInt(5)\n>>> number + 1, number.dtype\n"
    "(6, NET_INT)\n");

PyDoc_STRVAR(
    double_doc,
    "NetDouble(number=0.0, /)\n--\n\n"
    "One element of an array of `NET_DOUBLE`: a float that cannot be changed.\n\n"
    "Parameters\n----------\nnumber : float, int or str, optional\n    What ``float(number)`` takes.\n\n"
    "Notes\n-----\n"
    "A float for Python, so every operation of floats works and gives a float; a `numpy.inexact` for NumPy.\n"
    "``number.tobytes()`` are the 16 bytes that lie in arrays, and in C's ``spcomm_net_double_t``.\n\n"
    "SpeedesComm 4.\n\n"
    "Examples\n--------\n>>> import spcomm\n>>> number = spcomm.NetDouble(1.5)\n"
    ">>> number * 2, number.dtype\n(3.0, NET_DOUBLE)\n");

PyDoc_STRVAR(
    byteswap_doc,
    "byteswap($self, /)\n--\n\nThe number itself: one that is no element of an array has no byte order.");

PyDoc_STRVAR(tobytes_doc, "tobytes($self, /)\n--\n\nThe bytes of an element that this machine writes.");

static PyGetSetDef attributes[] = {{"dtype", dtype, NULL, "NET_INT or NET_DOUBLE.", NULL},
                                   {"itemsize", size, NULL, "The bytes of an element.", NULL},
                                   {"nbytes", size, NULL, "The bytes of an element.", NULL},
                                   {NULL, NULL, NULL, NULL, NULL}};

static PyMethodDef int_methods[] = {{"__reduce__", reduce_int, METH_NOARGS, NULL},
                                    {"byteswap", byteswap, METH_NOARGS, byteswap_doc},
                                    {"tobytes", int_bytes, METH_NOARGS, tobytes_doc},
                                    {NULL, NULL, 0, NULL}};
static PyMethodDef double_methods[] = {{"__reduce__", reduce_double, METH_NOARGS, NULL},
                                       {"byteswap", byteswap, METH_NOARGS, byteswap_doc},
                                       {"tobytes", double_bytes, METH_NOARGS, tobytes_doc},
                                       {NULL, NULL, 0, NULL}};

static PyTypeObject *make_scalar(const char *name, const char *doc, newfunc new, PyMethodDef *methods,
                                 PyTypeObject *number, PyTypeObject *numpys) {
    PyType_Slot slots[] = {{Py_tp_doc, (void *)doc},
                           {Py_tp_new, (void *)new},
                           {Py_tp_methods, methods},
                           {Py_tp_getset, attributes},
                           {0, NULL}};
    PyType_Spec spec = {.name = name, .flags = Py_TPFLAGS_DEFAULT, .slots = slots};
    PyObject *bases = PyTuple_Pack(2, number, numpys);
    PyObject *made = bases == NULL ? NULL : PyType_FromSpecWithBases(&spec, bases);
    Py_XDECREF(bases);
    return (PyTypeObject *)made;
}

/* net_scalars.py: forward(scalar, number) */
static int forward(PyTypeObject *scalar, PyTypeObject *number) {
    PyObject *module = scalar == NULL ? NULL : PyImport_ImportModule("spcomm.net_types.net_scalars");
    PyObject *done = module == NULL ? NULL : PyObject_CallMethod(module, "forward", "OO", scalar, number);
    Py_XDECREF(module);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

int spcpy_net_make_scalars(void) {
    spcpy_net_int_kind.scalar = make_scalar("spcomm.NetInt", int_doc, new_int, int_methods, &PyLong_Type,
                                            &PySignedIntegerArrType_Type);
    if (forward(spcpy_net_int_kind.scalar, &PyLong_Type) < 0) {
        return -1;
    }
    spcpy_net_double_kind.scalar = make_scalar("spcomm.NetDouble", double_doc, new_double, double_methods,
                                               &PyFloat_Type, &PyInexactArrType_Type);
    return forward(spcpy_net_double_kind.scalar, &PyFloat_Type);
}
