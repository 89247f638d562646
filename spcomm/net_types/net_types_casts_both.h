/* SPDX-License-Identifier: MIT */
/*
 * net_types_casts_both: the casts of either type, for net_types_casts.c alone. Loops that touch no Python objects
 * need no GIL, but for those of doubles (net_types_double.h). Memory may be unaligned.
 */

/* ---- loops */

#define TO_LOOP(NAME, assign)                                                                             \
    static int NET(to_##NAME)(PyArrayMethod_Context * context, char *const data[], const npy_intp dims[], \
                              const npy_intp strides[], NpyAuxData *aux) {                                \
        NET_VALUE piece[NET_PIECE];                                                                       \
        (void)context, (void)aux;                                                                         \
        for (npy_intp done = 0; done < dims[0]; done += NET_PIECE) {                                      \
            const npy_intp some = dims[0] - done < NET_PIECE ? dims[0] - done : NET_PIECE;                \
            char *to = data[1] + done * strides[1];                                                       \
            NET(unpack)(data[0] + done * strides[0], strides[0], some, piece);                            \
            assign                                                                                        \
        }                                                                                                 \
        return 0;                                                                                         \
    }

#define FROM_LOOP(NAME, assign)                                                                             \
    static int NET(from_##NAME)(PyArrayMethod_Context * context, char *const data[], const npy_intp dims[], \
                                const npy_intp strides[], NpyAuxData *aux) {                                \
        NET_VALUE piece[NET_PIECE];                                                                         \
        (void)context, (void)aux;                                                                           \
        for (npy_intp done = 0; done < dims[0]; done += NET_PIECE) {                                        \
            const npy_intp some = dims[0] - done < NET_PIECE ? dims[0] - done : NET_PIECE;                  \
            const char *from = data[0] + done * strides[0];                                                 \
            assign NET(pack)(piece, data[1] + done * strides[1], strides[1], some);                         \
        }                                                                                                   \
        return 0;                                                                                           \
    }

/* With a loop for what lies side by side, which compilers make vectors of. */
#define EACH_TO(type, size, value)                                        \
    if (strides[1] == (npy_intp)sizeof(type) && (size) == sizeof(type)) { \
        for (npy_intp i = 0; i < some; i++) {                             \
            const type made = (type)(value);                              \
            memcpy(to + i * sizeof(type), &made, sizeof made);            \
        }                                                                 \
    } else {                                                              \
        for (npy_intp i = 0; i < some; i++) {                             \
            const type made[2] = {(type)(value), 0};                      \
            memcpy(to + i * strides[1], made, (size));                    \
        }                                                                 \
    }

#define EACH_FROM(type, value)                               \
    for (npy_intp i = 0; i < some; i++) {                    \
        type given;                                          \
        memcpy(&given, from + i * strides[0], sizeof given); \
        piece[i] = (NET_VALUE)(value);                       \
    }

#define NUMBER_LOOPS(NAME, type)                         \
    TO_LOOP(NAME, EACH_TO(type, sizeof(type), piece[i])) \
    FROM_LOOP(NAME, EACH_FROM(type, given))
SPCPY_NET_NUMBERS(NUMBER_LOOPS)
#undef NUMBER_LOOPS

/* NumPy asks for the loop with the GIL, once for each array. */
#define CHOOSE(NAME, before, found, loop_flags)                                               \
    static int NET(choose_##NAME)(PyArrayMethod_Context * context, int aligned, int is_moved, \
                                  const npy_intp *strides, PyArrayMethod_StridedLoop **loop,  \
                                  NpyAuxData **aux, NPY_ARRAYMETHOD_FLAGS *flags) {           \
        (void)context, (void)aligned, (void)is_moved, (void)strides;                          \
        *loop = (found);                                                                      \
        *aux = NULL;                                                                          \
        *flags = (loop_flags);                                                                \
        return (before);                                                                      \
    }

#define COMPLEX_LOOPS(NAME, type)                            \
    TO_LOOP(NAME, EACH_TO(type, 2 * sizeof(type), piece[i])) \
    FROM_LOOP(NAME, EACH_FROM(type, given))                  \
    CHOOSE(NAME, warn_of_complex(), NET(from_##NAME), NET_METHOD_FLAGS)
SPCPY_NET_COMPLEX(COMPLEX_LOOPS)
#undef COMPLEX_LOOPS

TO_LOOP(BOOL, EACH_TO(npy_bool, sizeof(npy_bool), piece[i] != 0))
FROM_LOOP(BOOL, EACH_FROM(npy_bool, given != 0))
TO_LOOP(HALF, EACH_TO(npy_half, sizeof(npy_half), half_from((double)piece[i])))
FROM_LOOP(HALF, EACH_FROM(npy_half, half_value(given)))

/* ---- loops that make Python objects, with the GIL */

static PyObject *NET(plain_object)(const char *memory) {
    const NET_VALUE value = NET_CALL(value)(NET_CALL(load)(memory));
#if NET_IS_INT
    return PyLong_FromLong(value);
#else
    return PyFloat_FromDouble(value);
#endif
}

static int NET(assign)(PyObject *object, char *memory) {
    NET_VALUE value;
    if (NET(from_object)(object, &value) < 0) {
        return -1;
    }
    NET(pack)(&value, memory, sizeof(NET_ELEMENT), 1);
    return 0;
}

static int NET(to_OBJECT)(PyArrayMethod_Context *context, char *const data[], const npy_intp dims[],
                          const npy_intp strides[], NpyAuxData *aux) {
    (void)context, (void)aux;
    for (npy_intp i = 0; i < dims[0]; i++) {
        PyObject *made = NET(plain_object)(data[0] + i * strides[0]), *before;
        if (made == NULL) {
            return -1;
        }
        memcpy(&before, data[1] + i * strides[1], sizeof before);
        memcpy(data[1] + i * strides[1], &made, sizeof made);
        Py_XDECREF(before);
    }
    return 0;
}

static int NET(from_OBJECT)(PyArrayMethod_Context *context, char *const data[], const npy_intp dims[],
                            const npy_intp strides[], NpyAuxData *aux) {
    (void)context, (void)aux;
    for (npy_intp i = 0; i < dims[0]; i++) {
        PyObject *object;
        memcpy(&object, data[0] + i * strides[0], sizeof object);
        if (NET(assign)(object == NULL ? Py_None : object, data[1] + i * strides[1]) < 0) {
            return -1;
        }
    }
    return 0;
}

/* The same, out of a buffer of NumPy's, whose references end here. Those after an error are NumPy's still. */
static int NET(move_OBJECT)(PyArrayMethod_Context *context, char *const data[], const npy_intp dims[],
                            const npy_intp strides[], NpyAuxData *aux) {
    static const npy_intp one = 1;
    for (npy_intp i = 0; i < dims[0]; i++) {
        char *const places[] = {data[0] + i * strides[0], data[1] + i * strides[1]};
        PyObject *object;
        if (NET(from_OBJECT)(context, places, &one, strides, aux) < 0) {
            return -1;
        }
        memcpy(&object, places[0], sizeof object);
        memset(places[0], 0, sizeof object);
        Py_XDECREF(object);
    }
    return 0;
}

CHOOSE(OBJECT, 0, is_moved ? NET(move_OBJECT) : NET(from_OBJECT), NPY_METH_REQUIRES_PYAPI)

/* Text is ASCII here, in characters of 1 byte ('S') or 4 ('U'); what does not fit is cut off, as NumPy does. */
static int NET(to_text)(PyArrayMethod_Context *context, char *const data[], const npy_intp dims[],
                        const npy_intp strides[], NpyAuxData *aux) {
    const PyArray_Descr *descr = context->descriptors[1];
    const npy_intp room = PyDataType_ELSIZE(descr), width = descr->type_num == NPY_UNICODE ? 4 : 1;
    (void)aux;
    for (npy_intp i = 0; i < dims[0]; i++) {
        char *to = data[1] + i * strides[1];
        PyObject *number = NET(plain_object)(data[0] + i * strides[0]);
        PyObject *text = number == NULL ? NULL : PyObject_Str(number);
        Py_XDECREF(number);
        if (text == NULL) {
            return -1;
        }
        const npy_intp length = PyUnicode_GET_LENGTH(text);
        memset(to, 0, room);
        for (npy_intp k = 0; k < length && k < room / width; k++) {
            const npy_ucs4 character = PyUnicode_READ_CHAR(text, k);
            if (width == 4) {
                memcpy(to + 4 * k, &character, 4);
            } else {
                to[k] = (char)character;
            }
        }
        Py_DECREF(text);
    }
    return 0;
}

static int NET(from_text)(PyArrayMethod_Context *context, char *const data[], const npy_intp dims[],
                          const npy_intp strides[], NpyAuxData *aux) {
    const PyArray_Descr *descr = context->descriptors[0];
    (void)aux;
    for (npy_intp i = 0; i < dims[0]; i++) {
        PyObject *text = PyArray_Scalar(data[0] + i * strides[0], (PyArray_Descr *)descr, NULL);
        PyObject *plain = text == NULL || PyUnicode_Check(text)
                              ? Py_XNewRef(text)
                              : PyUnicode_FromEncodedObject(text, "ascii", "strict");
        const int status = plain == NULL ? -1 : NET(assign)(plain, data[1] + i * strides[1]);
        Py_XDECREF(text);
        Py_XDECREF(plain);
        if (status < 0) {
            return -1;
        }
    }
    return 0;
}

/* Between elements: the bytes as they are, as a memcpy. Foreign ones stay foreign until somebody reads them. */
static int NET(copy)(PyArrayMethod_Context *context, char *const data[], const npy_intp dims[],
                     const npy_intp strides[], NpyAuxData *aux) {
    (void)context, (void)aux;
    for (npy_intp i = 0; i < dims[0]; i++) {
        const NET_ELEMENT element = NET_CALL(load)(data[0] + i * strides[0]);
        memcpy(data[1] + i * strides[1], &element, sizeof element);
    }
    return 0;
}

#if !NET_IS_INT
static int NET(to_net_int)(PyArrayMethod_Context *context, char *const data[], const npy_intp dims[],
                           const npy_intp strides[], NpyAuxData *aux) {
    (void)context, (void)aux;
    for (npy_intp i = 0; i < dims[0]; i++) {
        const npy_int32 value =
            (npy_int32)spcomm_net_double_value(spcomm_net_double_load(data[0] + i * strides[0]));
        spcpy_net_int_pack(&value, data[1] + i * strides[1], sizeof(spcomm_net_int_t), 1);
    }
    return 0;
}

static int NET(from_net_int)(PyArrayMethod_Context *context, char *const data[], const npy_intp dims[],
                             const npy_intp strides[], NpyAuxData *aux) {
    (void)context, (void)aux;
    for (npy_intp i = 0; i < dims[0]; i++) {
        const npy_double value = spcomm_net_int_value(spcomm_net_int_load(data[0] + i * strides[0]));
        spcpy_net_double_pack(&value, data[1] + i * strides[1], sizeof(spcomm_net_double_t), 1);
    }
    return 0;
}
#endif

/* ---- descriptors */

/* The text type of a cast: the one that was asked for, or one as long as text can be. */
static NPY_CASTING NET(resolve)(struct PyArrayMethodObject_tag *method, PyArray_DTypeMeta *const *dtypes,
                                PyArray_Descr *const *given, PyArray_Descr **loop, npy_intp *offset) {
    (void)method, (void)offset;
    spcpy_net_kind_t *kind = &NET(kind);
    const int is_from = spcpy_net_kind_of(dtypes[0]) == NULL;
    PyArray_Descr *text = given[is_from ? 0 : 1];
    if (text != NULL) {
        text = PyArray_DescrNewByteorder(text, NPY_NATIVE);
    } else if ((text = PyArray_DescrNewFromType(dtypes[1]->type_num)) != NULL) {
        PyDataType_SET_ELSIZE(text, kind->text_length * (text->type_num == NPY_UNICODE ? 4 : 1));
    }
    if (text == NULL) {
        return (NPY_CASTING)-1;
    }
    loop[is_from ? 0 : 1] = text;
    loop[is_from ? 1 : 0] = (PyArray_Descr *)Py_NewRef(kind->descr);
    return is_from ? NPY_UNSAFE_CASTING : NPY_SAME_KIND_CASTING;
}

/* ---- the list */

typedef struct NET(cast) {
    PyArray_DTypeMeta *dtypes[2];
    PyType_Slot slots[4];
    PyArrayMethod_Spec spec;
} NET(cast_t);

/* One cast to (`is_to`) or from another DType; NULL is the one that is being made. */
static void NET(add)(NET(cast_t) * cast, PyArray_DTypeMeta *other, NPY_CASTING casting, int is_to,
                     PyArrayMethod_StridedLoop *loop, PyArrayMethod_GetLoop *choose, int needs_python,
                     int is_text) {
    cast->dtypes[0] = is_to ? NULL : other;
    cast->dtypes[1] = is_to ? other : NULL;
    cast->slots[0] = (PyType_Slot){NPY_METH_strided_loop, (void *)loop};
    cast->slots[1] = (PyType_Slot){NPY_METH_unaligned_strided_loop, (void *)loop};
    cast->slots[2] = is_text ? (PyType_Slot){NPY_METH_resolve_descriptors, (void *)NET(resolve)}
                             : (PyType_Slot){choose ? NPY_METH_get_loop : 0, (void *)choose};
    cast->slots[3] = (PyType_Slot){0, NULL};
    const int flags =
        NPY_METH_SUPPORTS_UNALIGNED | NET_METHOD_FLAGS | (needs_python ? NPY_METH_REQUIRES_PYAPI : 0);
    cast->spec = (PyArrayMethod_Spec){"spcomm_net_cast", 1, 1, casting, flags, cast->dtypes, cast->slots};
}

/* Both ways between this type and one of NumPy's. */
static int NET(add_both)(NET(cast_t) * casts, int number, PyArrayMethod_StridedLoop *to,
                         PyArrayMethod_StridedLoop *from, PyArrayMethod_GetLoop *choose, int needs_python) {
    const int like = NET(kind).like, is_text = number == NPY_STRING || number == NPY_UNICODE;
    PyArray_Descr *descr = PyArray_DescrFromType(number);
    if (descr == NULL) {
        return -1;
    }
    PyArray_DTypeMeta *other = (PyArray_DTypeMeta *)Py_TYPE(descr);
    Py_DECREF(descr); /* NumPy's own: it and its type stay */
    NET(add)(casts, other, is_text ? NPY_SAME_KIND_CASTING : casting_between(like, number), 1, to, NULL,
             needs_python, is_text);
    NET(add)(casts + 1, other, is_text ? NPY_UNSAFE_CASTING : casting_between(number, like), 0, from, choose,
             needs_python, is_text);
    return 0;
}

PyArrayMethod_Spec **NET(casts)(void) {
    static NET(cast_t) casts[48];
    static PyArrayMethod_Spec *specs[49];
    int count = 0, status = 0;
#define ADD(NAME, to, from, choose, needs_python) \
    status |= NET(add_both)(casts + count, NPY_##NAME, NET(to), NET(from), choose, needs_python), count += 2;
#define ADD_NUMBER(NAME, type) ADD(NAME, to_##NAME, from_##NAME, NULL, 0)
#define ADD_COMPLEX(NAME, type) ADD(NAME, to_##NAME, from_##NAME, NET(choose_##NAME), 0)
    SPCPY_NET_NUMBERS(ADD_NUMBER)
    SPCPY_NET_COMPLEX(ADD_COMPLEX)
    ADD_NUMBER(BOOL, npy_bool)
    ADD_NUMBER(HALF, npy_half)
    ADD(OBJECT, to_OBJECT, from_OBJECT, NET(choose_OBJECT), 1)
    ADD(STRING, to_text, from_text, NULL, 1)
    ADD(UNICODE, to_text, from_text, NULL, 1)
#undef ADD_NUMBER
#undef ADD_COMPLEX
#undef ADD
    NET(add)(&casts[count++], NULL, NPY_NO_CASTING, 1, NET(copy), NULL, 0, 0);
#if !NET_IS_INT
    NET(add)(&casts[count++], spcpy_net_int_kind.dtype, NPY_UNSAFE_CASTING, 1, NET(to_net_int), NULL, 0, 0);
    NET(add)(&casts[count++], spcpy_net_int_kind.dtype, NPY_SAFE_CASTING, 0, NET(from_net_int), NULL, 0, 0);
#endif
    for (int i = 0; i < count; i++) {
        specs[i] = &casts[i].spec;
    }
    return status < 0 ? NULL : specs;
}

#undef CHOOSE
#undef TO_LOOP
#undef FROM_LOOP
#undef EACH_TO
#undef EACH_FROM
