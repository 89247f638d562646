/* SPDX-License-Identifier: MIT */
/*
 * Operators.
 */
#include "mpi/spc_mpi_type.h"

void spc_mpi_ops_start(void) {
}
