/* SPDX-License-Identifier: MIT */
/*
 * spc_crc32c: the sum that frames carry: CRC-32C (Castagnoli), by the processor's instruction where there is one.
 *
 * It finds changes by a wire or a faulty memory, never deliberate ones. Pure functions: any thread may call them; they
 * cannot fail. The sum is the same on every machine, whatever its byte order.
 */
#ifndef SPC_CRC32C_H
#define SPC_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The sum of the bytes behind `sum`, followed by these bytes; 0 is the sum of nothing. So a sum can be built from
 * pieces: spc_crc32c(spc_crc32c(0, a, n), b, m). "123456789" has 0xe3069283. Length 0: `bytes` may be NULL. */
uint32_t spc_crc32c(uint32_t sum, const void *bytes, size_t length_bytes);

/* The same without the instruction: the fallback of spc_crc32c. Only tests need its name. */
uint32_t spc_crc32c_by_table(uint32_t sum, const void *bytes, size_t length_bytes);

#endif
