/* SPDX-License-Identifier: MIT */
/*
 * For scripts/coverage: most nodes leave by _exit, before which gcov has not written what it has counted.
 *
 * Included in each file of an instrumented build, it registers the library's counts. Compiled alone with
 * COVERAGE_PRELOAD, and loaded before all else, it has _exit write those of all libraries in the process.
 */
#ifndef COVERAGE_PRELOAD

#include <dlfcn.h>
#include <stddef.h>

extern void __gcov_dump(void);

__attribute__((constructor)) static void coverage_register(void) {
    void (*add)(void (*)(void));
    *(void **)&add = dlsym(RTLD_DEFAULT, "coverage_add");
    if (add != NULL) {
        add(__gcov_dump);
    }
}

#else

#include <sys/syscall.h>
#include <unistd.h>

enum { LIBRARIES = 64 };

static void (*dumps[LIBRARIES])(void);
static int count;

void coverage_add(void (*dump)(void)) {
    for (int i = 0; i < count; i++) {
        if (dumps[i] == dump) { /* another file of the same library */
            return;
        }
    }
    if (count < LIBRARIES) {
        dumps[count++] = dump;
    }
}

void _exit(int code) {
    for (int i = 0; i < count; i++) {
        dumps[i]();
    }
    for (;;) {
        syscall(SYS_exit_group, code);
    }
}

#endif
