/* SPDX-License-Identifier: MIT */
/*
 * net_types_double: names for the templates, which are about NET_DOUBLE after this. To be included again and again,
 * by .c files of this extension only. Where reading one element writes, all loops keep the GIL: who reads meanwhile
 * could see the old status with the new value.
 */
#undef NET
#undef NET_CALL
#undef NET_ELEMENT
#undef NET_VALUE
#undef NET_IS_INT
#undef NET_IS_NAN
#undef NET_READS_IN_PLACE
#undef NET_METHOD_FLAGS
#define NET(name) spcpy_net_double_##name
#define NET_CALL(name) spcomm_net_double_##name
#define NET_ELEMENT spcomm_net_double_t
#define NET_VALUE npy_double
#define NET_IS_INT 0
#define NET_IS_NAN(value) ((value) != (value))
#define NET_READS_IN_PLACE SPCPY_NET_DOUBLE_RETAGS
#define NET_METHOD_FLAGS (SPCPY_NET_DOUBLE_RETAGS ? NPY_METH_REQUIRES_PYAPI : 0)
