/* SPDX-License-Identifier: MIT */
/* For LD_PRELOAD: the SHORTAGE-th allocation of spcomm's MPI library fails, and the file SHORTAGE_MET is there. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

static uintptr_t first, last;
static long left = -1;

static int find_library(struct dl_phdr_info *info, size_t bytes, void *argument) {
    (void)bytes;
    (void)argument;
    for (int i = 0; strstr(info->dlpi_name, "libmpi_abi") != NULL && i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_flags & PF_X) {
            first = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            last = first + info->dlpi_phdr[i].p_memsz;
        }
    }
    return 0;
}

static int is_short(const void *caller) {
    if (left < 0) {
        const char *number = getenv("SHORTAGE");
        left = number != NULL ? atol(number) : 0;
        dl_iterate_phdr(find_library, NULL);
    }
    if (left == 0 || (uintptr_t)caller < first || (uintptr_t)caller >= last || --left > 0) {
        return 0;
    }
    close(open(getenv("SHORTAGE_MET"), O_CREAT | O_WRONLY, 0600));
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t bytes) {
    return is_short(__builtin_return_address(0)) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes) {
    return is_short(__builtin_return_address(0)) ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes) {
    return is_short(__builtin_return_address(0)) ? NULL : __libc_realloc(memory, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes) {
    *memory = is_short(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, bytes);
    return *memory != NULL ? 0 : ENOMEM;
}
