/* SPDX-License-Identifier: MIT */
/*
 * net_types_legacy: scalars as arguments of functions that want numbers of another dtype, in NumPy before 2.2.
 *
 * There np.repeat(x, n), where n is a NetInt, asks for the dtype of n by its type, in a list that has NumPy's own
 * dtypes and those of the old kind only, finds none, takes the first base that it knows, and reads the object's memory
 * as that: it crashes. So the list gets a dtype of the old kind for each scalar type: an int64 or a double, which casts
 * to other dtypes as NumPy's own does. A type may be registered for one dtype only, and NetInt is NET_INT's: so another
 * type is registered, and the descriptor, which is what the list has, gets NetInt afterwards.
 */
#include "net_types.h"

/* ---- what NumPy asks of a dtype: its memory holds an npy_int64 or an npy_double */

static PyObject *get_int(void *memory, void *Py_UNUSED(array)) {
    npy_int64 value;
    memcpy(&value, memory, sizeof value);
    return PyLong_FromLongLong(value);
}

static int set_int(PyObject *object, void *memory, void *Py_UNUSED(array)) {
    const npy_int64 value = PyLong_AsLongLong(object);
    memcpy(memory, &value, sizeof value);
    return value == -1 && PyErr_Occurred() ? -1 : 0;
}

static PyObject *get_double(void *memory, void *Py_UNUSED(array)) {
    npy_double value;
    memcpy(&value, memory, sizeof value);
    return PyFloat_FromDouble(value);
}

static int set_double(PyObject *object, void *memory, void *Py_UNUSED(array)) {
    const npy_double value = PyFloat_AsDouble(object);
    memcpy(memory, &value, sizeof value);
    return value == -1.0 && PyErr_Occurred() ? -1 : 0;
}

static void swap_bytes(char *memory) {
    for (int i = 0; i < 4; i++) {
        const char byte = memory[i];
        memory[i] = memory[7 - i];
        memory[7 - i] = byte;
    }
}

static void copyswap(void *to, void *from, int swap, void *Py_UNUSED(array)) {
    if (from != NULL) {
        memcpy(to, from, 8);
    }
    if (swap) {
        swap_bytes(to);
    }
}

static void copyswapn(void *to, npy_intp to_stride, void *from, npy_intp from_stride, npy_intp count,
                      int swap, void *array) {
    for (npy_intp i = 0; i < count; i++) {
        copyswap((char *)to + i * to_stride, from == NULL ? NULL : (char *)from + i * from_stride, swap,
                 array);
    }
}

/* ---- casts, to NumPy's numbers but float16, of which npymath knows */

/* A number that does not fit becomes the lowest int64, as on most processors. */
static npy_int64 whole(npy_double value) {
    return value >= -9223372036854775808.0 && value < 9223372036854775808.0 ? (npy_int64)value
                                                                            : NPY_MIN_INT64;
}

static npy_int64 same(npy_int64 value) {
    return value;
}

#define CAST(from_t, from_name, to_t, to_name, convert)                                                 \
    static void from_name##_to_##to_name(void *from, void *to, npy_intp count, void *Py_UNUSED(source), \
                                         void *Py_UNUSED(target)) {                                     \
        for (npy_intp i = 0; i < count; i++) {                                                          \
            ((to_t *)to)[i] = (to_t)convert(((from_t *)from)[i]);                                       \
        }                                                                                               \
    }

/* Both parts. */
#define CAST_COMPLEX(from_t, from_name, part_t, to_name)                                                \
    static void from_name##_to_##to_name(void *from, void *to, npy_intp count, void *Py_UNUSED(source), \
                                         void *Py_UNUSED(target)) {                                     \
        for (npy_intp i = 0; i < count; i++) {                                                          \
            ((part_t *)to)[2 * i] = (part_t)((from_t *)from)[i];                                        \
            ((part_t *)to)[2 * i + 1] = 0;                                                              \
        }                                                                                               \
    }

#define CASTS(from_t, from_name, to_int)                      \
    CAST(from_t, from_name, npy_bool, bool, 0 !=)             \
    CAST(from_t, from_name, npy_byte, byte, to_int)           \
    CAST(from_t, from_name, npy_ubyte, ubyte, to_int)         \
    CAST(from_t, from_name, npy_short, short, to_int)         \
    CAST(from_t, from_name, npy_ushort, ushort, to_int)       \
    CAST(from_t, from_name, npy_int, int, to_int)             \
    CAST(from_t, from_name, npy_uint, uint, to_int)           \
    CAST(from_t, from_name, npy_long, long, to_int)           \
    CAST(from_t, from_name, npy_ulong, ulong, to_int)         \
    CAST(from_t, from_name, npy_longlong, longlong, to_int)   \
    CAST(from_t, from_name, npy_ulonglong, ulonglong, to_int) \
    CAST(from_t, from_name, npy_float, float, +)              \
    CAST(from_t, from_name, npy_double, double, +)            \
    CAST(from_t, from_name, npy_longdouble, longdouble, +)    \
    CAST_COMPLEX(from_t, from_name, npy_float, cfloat)        \
    CAST_COMPLEX(from_t, from_name, npy_double, cdouble)      \
    CAST_COMPLEX(from_t, from_name, npy_longdouble, clongdouble)

CASTS(npy_int64, int64, same)
CASTS(npy_double, float64, whole)

typedef struct legacy_cast {
    int target;
    PyArray_VectorUnaryFunc *function;
} legacy_cast_t;

#define LIST(from_name)                                \
    {                                                  \
        {NPY_BOOL, from_name##_to_bool},               \
        {NPY_BYTE, from_name##_to_byte},               \
        {NPY_UBYTE, from_name##_to_ubyte},             \
        {NPY_SHORT, from_name##_to_short},             \
        {NPY_USHORT, from_name##_to_ushort},           \
        {NPY_INT, from_name##_to_int},                 \
        {NPY_UINT, from_name##_to_uint},               \
        {NPY_LONG, from_name##_to_long},               \
        {NPY_ULONG, from_name##_to_ulong},             \
        {NPY_LONGLONG, from_name##_to_longlong},       \
        {NPY_ULONGLONG, from_name##_to_ulonglong},     \
        {NPY_FLOAT, from_name##_to_float},             \
        {NPY_DOUBLE, from_name##_to_double},           \
        {NPY_LONGDOUBLE, from_name##_to_longdouble},   \
        {NPY_CFLOAT, from_name##_to_cfloat},           \
        {NPY_CDOUBLE, from_name##_to_cdouble},         \
        {NPY_CLONGDOUBLE, from_name##_to_clongdouble}, \
        {0, NULL},                                     \
    }

static const legacy_cast_t int_casts[] = LIST(int64);
static const legacy_cast_t double_casts[] = LIST(float64);

/* ---- making them */

typedef struct legacy {
    PyArray_ArrFuncs functions;
    PyArray_DescrProto proto;
} legacy_t;

static legacy_t legacy_int, legacy_double; /* NumPy keeps pointers to the functions */

static PyTypeObject *make_placeholder(const char *name) {
    PyType_Slot slots[] = {{0, NULL}};
    PyType_Spec spec = {.name = name, .flags = Py_TPFLAGS_DEFAULT, .slots = slots};
    return (PyTypeObject *)PyType_FromSpecWithBases(&spec, (PyObject *)&PyGenericArrType_Type);
}

static int add_casts(PyArray_Descr *descr, const legacy_cast_t *casts) {
    int status = 0;
    for (; casts->function != NULL && status == 0; casts++) {
        status = PyArray_RegisterCastFunc(descr, casts->target, casts->function);
    }
    return status;
}

static int make_legacy(legacy_t *made, const spcpy_net_kind_t *kind, const legacy_cast_t *casts,
                       const char *name) {
    PyTypeObject *placeholder = make_placeholder(name);
    if (placeholder == NULL) {
        return -1;
    }
    const npy_intp bytes = 8;
    made->functions.copyswap = copyswap;
    made->functions.copyswapn = copyswapn;
    made->proto = (PyArray_DescrProto){PyObject_HEAD_INIT(NULL).typeobj = placeholder,
                                       .kind = 'V',
                                       .type = 'V',
                                       .byteorder = '=',
                                       .flags = NPY_USE_GETITEM | NPY_USE_SETITEM | NPY_NEEDS_PYAPI,
                                       .elsize = (int)bytes,
                                       .alignment = (int)bytes,
                                       .f = &made->functions,
                                       .hash = -1};
    Py_SET_TYPE((PyObject *)&made->proto, &PyArrayDescr_Type);
    const int number = PyArray_RegisterDataType(&made->proto);
    PyArray_Descr *descr = number < 0 ? NULL : PyArray_DescrFromType(number);
    if (descr == NULL) {
        return -1;
    }
    descr->typeobj = (PyTypeObject *)Py_NewRef((PyObject *)kind->scalar);
    return add_casts(descr, casts);
}

/* By name: the interface of 2.1 and 2.2 has one number. -1: an error. */
static int is_needed(void) {
    PyObject *numpy = PyImport_ImportModule("numpy");
    PyObject *version = numpy == NULL ? NULL : PyObject_GetAttrString(numpy, "__version__");
    const char *text = version == NULL ? NULL : PyUnicode_AsUTF8(version);
    const int needed = text == NULL ? -1 : strncmp(text, "2.0.", 4) == 0 || strncmp(text, "2.1.", 4) == 0;
    Py_XDECREF(numpy);
    Py_XDECREF(version);
    return needed;
}

int spcpy_net_make_legacy(void) {
    const int needed = is_needed();
    if (needed <= 0) {
        return needed;
    }
    PyArray_InitArrFuncs(&legacy_int.functions);
    PyArray_InitArrFuncs(&legacy_double.functions);
    legacy_int.functions.getitem = get_int;
    legacy_int.functions.setitem = set_int;
    legacy_double.functions.getitem = get_double;
    legacy_double.functions.setitem = set_double;
    return make_legacy(&legacy_int, &spcpy_net_int_kind, int_casts, "spcomm.net_types.net_types.LegacyInt")
                   < 0
               ? -1
               : make_legacy(&legacy_double, &spcpy_net_double_kind, double_casts,
                             "spcomm.net_types.net_types.LegacyDouble");
}
