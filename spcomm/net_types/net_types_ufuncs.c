/* SPDX-License-Identifier: MIT */
/*
 * net_types_ufuncs: lets NumPy's ufuncs compute with both types. There are no loops here, only promoters: each asks
 * the ufunc what it does with int64 or float64 in the place of ours, and names that loop; NumPy casts piece by
 * piece. After a promoter NumPy promotes no further, so what it gives is an exact signature.
 */
#include "net_types.h"

/* The stand-in for an operand when the ufunc is asked: a new reference. `place` NULL is None. */
static PyObject *stand_in(PyArray_DTypeMeta *dtype) {
    if (dtype == NULL) {
        return Py_NewRef(Py_None);
    }
    const spcpy_net_kind_t *kind = spcpy_net_kind_of(dtype);
    if (kind != NULL) {
        return (PyObject *)PyArray_DescrFromType(kind->wide);
    }
    PyTypeObject *scalar = dtype->scalar_type;
    if (scalar == &PyLong_Type || scalar == &PyFloat_Type || scalar == &PyComplex_Type) {
        return Py_NewRef((PyObject *)scalar); /* a number of Python, which has no type of its own for NumPy */
    }
    return (PyObject *)PyArray_GetDefaultDescr(dtype);
}

static PyObject *stand_ins(PyArray_DTypeMeta *const dtypes[], int count) {
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; tuple != NULL && i < count; i++) {
        PyObject *item = stand_in(dtypes == NULL ? NULL : dtypes[i]);
        if (item == NULL) {
            Py_CLEAR(tuple);
            break;
        }
        PyTuple_SET_ITEM(tuple, i, item);
    }
    return tuple;
}

/* ufunc.resolve_dtypes(operands, signature=..., reduction=..., casting="unsafe"): a tuple, all of NumPy's own. */
static PyObject *ask(PyUFuncObject *ufunc, PyArray_DTypeMeta *const operands[],
                     PyArray_DTypeMeta *const signature[]) {
    PyObject *given = stand_ins(operands, ufunc->nargs), *fixed = stand_ins(signature, ufunc->nargs);
    PyObject *answer = NULL;
    PyObject *keywords = fixed == NULL
                             ? NULL
                             : Py_BuildValue("{s:O,s:O,s:s}", "signature", fixed, "reduction",
                                             operands[0] == NULL ? Py_True : Py_False, "casting", "unsafe");
    PyObject *method = PyObject_GetAttrString((PyObject *)ufunc, "resolve_dtypes");
    PyObject *arguments = given == NULL ? NULL : PyTuple_Pack(1, given);
    if (keywords != NULL && method != NULL && arguments != NULL) {
        answer = PyObject_Call(method, arguments, keywords);
    }
    Py_XDECREF(arguments);
    Py_XDECREF(method);
    Py_XDECREF(keywords);
    Py_XDECREF(fixed);
    Py_XDECREF(given);
    return answer;
}

/* An output of our type is cast to at the end, so it says nothing about the loop. */
static int promote(PyObject *object, PyArray_DTypeMeta *const operands[],
                   PyArray_DTypeMeta *const signature[], PyArray_DTypeMeta *found[]) {
    PyUFuncObject *ufunc = (PyUFuncObject *)object;
    PyArray_DTypeMeta *asked[NPY_MAXARGS] = {NULL};
    for (int i = 0; i < ufunc->nargs; i++) {
        const int is_ours = operands[i] != NULL && spcpy_net_kind_of(operands[i]) != NULL;
        asked[i] = i >= ufunc->nin && is_ours ? NULL : operands[i];
        if (signature[i] != NULL && spcpy_net_kind_of(signature[i]) != NULL) {
            return PyErr_Format(PyExc_TypeError,
                                "%s: there are results of %s only with out=; otherwise use "
                                "astype() on the result",
                                ufunc->name, spcpy_net_kind_of(signature[i])->name),
                   -1;
        }
    }
    PyObject *answer = ask(ufunc, asked, signature);
    if (answer == NULL) {
        return -1;
    }
    for (int i = 0; i < ufunc->nargs; i++) {
        found[i] = (PyArray_DTypeMeta *)Py_NewRef((PyObject *)Py_TYPE(PyTuple_GET_ITEM(answer, i)));
    }
    Py_DECREF(answer);
    return 0;
}

/* ---- registering */

/* For one choice of types among the inputs; others may be anything. */
static int add_promoter(PyUFuncObject *ufunc, PyObject *capsule, PyObject *const inputs[]) {
    PyObject *dtypes = PyTuple_New(ufunc->nargs);
    if (dtypes == NULL) {
        return -1;
    }
    for (int i = 0; i < ufunc->nargs; i++) {
        PyTuple_SET_ITEM(dtypes, i, Py_NewRef(i < ufunc->nin ? inputs[i] : (PyObject *)&PyArrayDescr_Type));
    }
    const int status = PyUFunc_AddPromoter((PyObject *)ufunc, dtypes, capsule);
    Py_DECREF(dtypes);
    return status;
}

/* Every choice of at least one of ours, those with most of them first: NumPy takes the most exact. */
static int add_promoters(PyUFuncObject *ufunc, PyObject *capsule) {
    PyObject *const choices[] = {(PyObject *)&PyArrayDescr_Type, (PyObject *)spcpy_net_int_kind.dtype,
                                 (PyObject *)spcpy_net_double_kind.dtype};
    PyObject *inputs[8];
    int all = 1;
    if (ufunc->nin > 3 || ufunc->nin < 1) {
        return 0;
    }
    for (int i = 0; i < ufunc->nin; i++) {
        all *= 3;
    }
    for (int wanted = ufunc->nin; wanted > 0; wanted--) {
        for (int number = 1; number < all; number++) {
            int ours = 0;
            for (int i = 0, rest = number; i < ufunc->nin; i++, rest /= 3) {
                inputs[i] = choices[rest % 3];
                ours += rest % 3 != 0;
            }
            if (ours == wanted && add_promoter(ufunc, capsule, inputs) < 0) {
                return -1;
            }
        }
    }
    if (ufunc->nin != 2 || ufunc->nout != 1) {
        return 0;
    }
    for (int i = 1; i < 3; i++) { /* reductions ask without a type for the result */
        inputs[0] = Py_None;
        inputs[1] = choices[i];
        if (add_promoter(ufunc, capsule, inputs) < 0) {
            return -1;
        }
    }
    return 0;
}

/* All ufuncs that a module has. */
static int add_for_module(const char *name, PyObject *capsule, PyObject *seen) {
    PyObject *module = PyImport_ImportModule(name), *key, *value;
    PyObject *names = module == NULL ? NULL : PyModule_GetDict(module);
    Py_ssize_t at = 0;
    int status = names == NULL ? -1 : 0;
    while (status == 0 && PyDict_Next(names, &at, &key, &value)) {
        if (Py_IS_TYPE(value, &PyUFunc_Type)) {
            const int known = PySet_Contains(seen, value);
            status = known != 0 ? (known < 0 ? -1 : 0) : PySet_Add(seen, value);
            if (known == 0 && status == 0) {
                status = add_promoters((PyUFuncObject *)value, capsule);
            }
        }
    }
    Py_XDECREF(module);
    return status;
}

int spcpy_net_add_promoters(void) {
    PyObject *capsule = PyCapsule_New((void *)promote, "numpy._ufunc_promoter", NULL);
    PyObject *seen = PySet_New(NULL);
    int status = capsule == NULL || seen == NULL ? -1 : add_for_module("numpy", capsule, seen);
    if (status == 0) {
        status = add_for_module("numpy._core.umath", capsule,
                                seen); /* np.clip is a function around one of these */
    }
    Py_XDECREF(seen);
    Py_XDECREF(capsule);
    return status;
}
