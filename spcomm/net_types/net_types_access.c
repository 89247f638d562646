/* SPDX-License-Identifier: MIT */
/* net_types_access: many elements at once. */
#include "net_types.h"

#include "net_types_int.h"

#include "net_types_access_both.h"

#include "net_types_double.h"

#include "net_types_access_both.h"
