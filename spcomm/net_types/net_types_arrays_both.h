/* SPDX-License-Identifier: MIT */
/*
 * net_types_arrays_both: what NumPy calls through a descriptor, for both types, for net_types_arrays.c alone.
 * Without the GIL where NumPy releases it: it does not for doubles whose reading writes (NPY_NEEDS_PYAPI). Functions
 * that can fail return -1 with a Python error set.
 */

static NET_VALUE NET(value_at)(const char *memory) {
    return NET_CALL(value)(NET_CALL(load)(memory));
}

/* ---- one element */

/* Unlike the DType's own getitem this one is told the array, and so whether it may write. For a field of a structure
 * NumPy makes one up on its stack, which has the flags of the whole, but no type. */
static PyObject *NET(getitem)(void *memory, void *array) {
    const int is_array =
        array != NULL && (Py_TYPE((PyObject *)array) == NULL || PyArray_Check((PyObject *)array));
    const int in_place = NET_READS_IN_PLACE && is_array && PyArray_ISWRITEABLE((PyArrayObject *)array);
    return NET(scalar)(in_place ? NET_CALL(read)(memory) : NET(value_at)(memory));
}

static int NET(setitem)(PyObject *object, void *memory, void *array) {
    (void)array;
    NET_VALUE value;
    if (NET(from_object)(object, &value) < 0) {
        return -1;
    }
    NET(pack)(&value, memory, sizeof(NET_ELEMENT), 1);
    return 0;
}

/* NumPy calls both unchecked. `swap` comes from a.byteswap() alone, since the dtype has no other byte order. */
static void NET(copyswapn)(void *to, npy_intp to_stride, void *from, npy_intp from_stride, npy_intp count,
                           int swap, void *array) {
    (void)array;
    for (npy_intp i = 0; i < count; i++) {
        char *place = (char *)to + i * to_stride;
        NET_ELEMENT element = NET_CALL(load)(from == NULL ? place : (char *)from + i * from_stride);
        if (swap) {
            element = NET_CALL(byteswap)(element);
        }
        memcpy(place, &element, sizeof element);
    }
}

static void NET(copyswap)(void *to, void *from, int swap, void *array) {
    NET(copyswapn)(to, sizeof(NET_ELEMENT), from, sizeof(NET_ELEMENT), 1, swap, array);
}

static npy_bool NET(nonzero)(void *memory, void *array) {
    (void)array;
    return NET(value_at)(memory) != 0;
}

/* ---- order: NaN is last, as in NumPy */

static int NET(is_less)(NET_VALUE left, NET_VALUE right) {
    return left < right || (NET_IS_NAN(right) && !NET_IS_NAN(left));
}

static int NET(compare)(const void *left, const void *right, void *array) {
    (void)array;
    const NET_VALUE first = NET(value_at)(left), second = NET(value_at)(right);
    return NET(is_less)(first, second) ? -1 : NET(is_less)(second, first);
}

/* The first of the largest (`sign` 1) or smallest; a NaN counts as both. */
static int NET(extreme)(void *memory, npy_intp count, npy_intp *at, int sign) {
    NET_VALUE piece[NET_PIECE], best = NET(value_at)(memory);
    *at = 0;
    for (npy_intp done = 0; done < count && !NET_IS_NAN(best); done += NET_PIECE) {
        const npy_intp some = count - done < NET_PIECE ? count - done : NET_PIECE;
        NET(unpack)((char *)memory + done * sizeof(NET_ELEMENT), sizeof(NET_ELEMENT), some, piece);
        for (npy_intp i = 0; i < some && !NET_IS_NAN(best); i++) {
            if (NET_IS_NAN(piece[i]) || (sign > 0 ? piece[i] > best : piece[i] < best)) {
                best = piece[i];
                *at = done + i;
            }
        }
    }
    return 0;
}

static int NET(argmax)(void *memory, npy_intp count, npy_intp *at, void *array) {
    (void)array;
    return NET(extreme)(memory, count, at, 1);
}

static int NET(argmin)(void *memory, npy_intp count, npy_intp *at, void *array) {
    (void)array;
    return NET(extreme)(memory, count, at, -1);
}

/* ---- sorting: of plain numbers, a merge sort, so always a stable one; maybe without the GIL */

/* Sorts `from`, or with `order` these, so that from[order[i]] rises; `spare` is as long. */
static void NET(merge)(NET_VALUE *values, npy_intp *order, NET_VALUE *spare, npy_intp *spare_order,
                       npy_intp count);

static int NET(sort)(void *memory, npy_intp count, void *array) {
    (void)array;
    NET_VALUE *values = malloc((size_t)(count ? count : 1) * 2 * sizeof *values);
    if (values == NULL) {
        return -1;
    }
    NET(unpack)(memory, sizeof(NET_ELEMENT), count, values);
    NET(merge)(values, NULL, values + count, NULL, count);
    NET(pack)(values, memory, sizeof(NET_ELEMENT), count);
    free(values);
    return 0;
}

static int NET(argsort)(void *memory, npy_intp *order, npy_intp count, void *array) {
    (void)array;
    NET_VALUE *values = malloc((size_t)(count ? count : 1) * 2 * sizeof *values);
    npy_intp *spare = malloc((size_t)(count ? count : 1) * sizeof *spare);
    if (values == NULL || spare == NULL) {
        free(values);
        free(spare);
        return -1;
    }
    for (npy_intp i = 0; i < count; i++) {
        values[i] = NET(value_at)((char *)memory + order[i] * sizeof(NET_ELEMENT));
    }
    NET(merge)(values, order, values + count, spare, count);
    free(values);
    free(spare);
    return 0;
}

static void NET(insert)(NET_VALUE *values, npy_intp *order, npy_intp count) {
    for (npy_intp i = 1; i < count; i++) {
        const NET_VALUE value = values[i];
        const npy_intp place = order ? order[i] : 0;
        npy_intp k = i;
        for (; k > 0 && NET(is_less)(value, values[k - 1]); k--) {
            values[k] = values[k - 1];
            if (order) {
                order[k] = order[k - 1];
            }
        }
        values[k] = value;
        if (order) {
            order[k] = place;
        }
    }
}

static void NET(merge)(NET_VALUE *values, npy_intp *order, NET_VALUE *spare, npy_intp *spare_order,
                       npy_intp count) {
    if (count <= 16) {
        NET(insert)(values, order, count);
        return;
    }
    const npy_intp half = count / 2;
    NET(merge)(values, order, spare, spare_order, half);
    NET(merge)(values + half, order ? order + half : NULL, spare, spare_order, count - half);
    memcpy(spare, values, (size_t)half * sizeof *values);
    if (order) {
        memcpy(spare_order, order, (size_t)half * sizeof *order);
    }
    for (npy_intp left = 0, right = half, to = 0; left < half; to++) {
        const int take_right = right < count && NET(is_less)(values[right], spare[left]);
        values[to] = take_right ? values[right] : spare[left];
        if (order) {
            order[to] = take_right ? order[right] : spare_order[left];
        }
        right += take_right;
        left += !take_right;
    }
}

/* ---- making arrays */

#if NET_IS_INT
/* Wherever the GIL is. */
static int NET(refuse)(double value) {
    const PyGILState_STATE state = PyGILState_Ensure();
    PyObject *number = PyFloat_FromDouble(value);
    PyErr_Format(PyExc_OverflowError, "%S does not fit into a NET_INT: it holds integers from %d to %d",
                 number, NPY_MIN_INT32, NPY_MAX_INT32);
    Py_XDECREF(number);
    PyGILState_Release(state);
    return -1;
}
#endif

/* np.arange gives the first two. */
static int NET(fill)(void *memory, npy_intp count, void *array) {
    (void)array;
    char *place = memory;
    const npy_intp step = sizeof(NET_ELEMENT);
    if (count < 2) {
        return 0;
    }
    const double first = (double)NET(value_at)(place), delta = (double)NET(value_at)(place + step) - first;
#if NET_IS_INT
    const double last = first + (double)(count - 1) * delta;
    if (last < NPY_MIN_INT32 || last > NPY_MAX_INT32) {
        return NET(refuse)(last);
    }
#endif
    for (npy_intp i = 2; i < count; i++) {
        const NET_VALUE value = (NET_VALUE)(first + (double)i * delta); /* exact for ints */
        NET(pack)(&value, place + i * step, step, 1);
    }
    return 0;
}

/* np.fromstring(text, sep=" "), which has released the GIL. Where there is no number, `end` says so. */
static int NET(fromstr)(char *text, void *memory, char **end, PyArray_Descr *descr) {
    (void)descr;
#if NET_IS_INT
    const long found = PyOS_strtol(text, end, 10); /* too large ones are LONG_MAX or LONG_MIN */
    if (found < NPY_MIN_INT32 || found > NPY_MAX_INT32) {
        return NET(refuse)((double)found);
    }
    const NET_VALUE value = (NET_VALUE)found;
#else
    const PyGILState_STATE state = PyGILState_Ensure();
    const NET_VALUE value = PyOS_string_to_double(text, end, NULL);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        *end = text;
    }
    PyGILState_Release(state);
#endif
    NET(pack)(&value, memory, sizeof(NET_ELEMENT), 1);
    return 0;
}

void NET(set_functions)(PyArray_Descr *descr) {
    PyArray_ArrFuncs *functions = PyDataType_GetArrFuncs(descr);
    functions->getitem = NET(getitem);
    functions->setitem = NET(setitem);
    functions->copyswap = NET(copyswap);
    functions->copyswapn = NET(copyswapn);
    functions->nonzero = NET(nonzero);
    functions->compare = NET(compare);
    functions->argmax = NET(argmax);
    functions->argmin = NET(argmin);
    functions->fill = NET(fill);
    functions->fromstr = NET(fromstr);
    for (int kind = 0; kind < NPY_NSORTS; kind++) {
        functions->sort[kind] = NET(sort);
        functions->argsort[kind] = NET(argsort);
    }
}
