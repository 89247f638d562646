/* SPDX-License-Identifier: MIT */
/*
 * net_types_arrays: the functions of a descriptor that NumPy has had from of old: single elements, byte swapping,
 * sorting. They are set through PyDataType_GetArrFuncs: the numbers of their slots were changed in NumPy 2.4.
 */
#include "net_types.h"

#include "net_types_int.h"

#include "net_types_arrays_both.h"

#include "net_types_double.h"

#include "net_types_arrays_both.h"
