/* SPDX-License-Identifier: MIT */
/*
 * net_types_int: names for the templates, which are about NET_INT after this. To be included again and again, by .c
 * files of this extension only.
 */
#undef NET
#undef NET_CALL
#undef NET_ELEMENT
#undef NET_VALUE
#undef NET_IS_INT
#undef NET_IS_NAN
#undef NET_READS_IN_PLACE
#undef NET_METHOD_FLAGS
#define NET(name) spcpy_net_int_##name
#define NET_CALL(name) spcomm_net_int_##name
#define NET_ELEMENT spcomm_net_int_t
#define NET_VALUE npy_int32
#define NET_IS_INT 1
#define NET_IS_NAN(value) 0
#define NET_READS_IN_PLACE 1
#define NET_METHOD_FLAGS 0
