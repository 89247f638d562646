/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sys/mman.h with -std=c11 */
#endif
#include "segment/spc_segment.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/spc_atomic.h"
#include "base/spc_clock.h"
#include "base/spc_error.h"
#include "base/spc_platform.h"

enum {
    SPC_SEGMENT_PAGE = 4096,  /* a multiple of cache lines; larger real pages do no harm */
    SPC_SEGMENT_VERSION = 10, /* raise it with every change of any structure in shared memory */
};

#define SPC_SEGMENT_MAGIC UINT64_C(0x006d6d6f63707301) /* also reveals the byte order */

typedef struct spc_directory_entry_shared {
    uint64_t offset;
    uint64_t stride;
    uint32_t count;
    uint32_t padding;
} spc_directory_entry_shared_t;

_Static_assert(sizeof(spc_directory_entry_shared_t) == 24,
               "spc_directory_entry_shared_t lies in shared memory");

/* The segment's first page. Written by spc_segment_create, before any other process has the descriptor; then only
 * read. */
typedef struct spc_directory_shared {
    uint64_t magic;
    uint32_t version;
    uint32_t region_count;
    uint64_t size_bytes;
    spc_config_t config;
    spc_directory_entry_shared_t region[SPC_REGION_COUNT];
} spc_directory_shared_t;

_Static_assert(sizeof(spc_directory_shared_t) == 136 + 24 * SPC_REGION_COUNT,
               "spc_directory_shared_t lies in shared memory");
_Static_assert(sizeof(spc_directory_shared_t) <= SPC_SEGMENT_PAGE, "the directory fits into the first page");

static const spc_directory_shared_t *directory_of(const spc_segment_t *segment) {
    return (const spc_directory_shared_t *)segment->base;
}

/* Small parts end with a cache line, large ones with a page: then no two of them share one. */
static uint64_t round_stride(uint64_t stride) {
    return spc_round_up(stride, stride < SPC_SEGMENT_PAGE ? SPC_CACHE_LINE : SPC_SEGMENT_PAGE);
}

/* SPC_EINVAL if the regions together are larger than a file can be. */
static int lay_out(const spc_segment_plan_t *plan, spc_directory_shared_t *directory) {
    uint64_t end = SPC_SEGMENT_PAGE;
    for (int i = 0; i < SPC_REGION_COUNT; i++) {
        spc_directory_entry_shared_t *entry = &directory->region[i];
        if (plan->region[i].stride > INT64_MAX) {
            return SPC_EINVAL;
        }
        entry->offset = end;
        entry->stride = round_stride(plan->region[i].stride);
        entry->count = entry->stride != 0 ? plan->region[i].count : 0;
        uint64_t bytes;
        if (__builtin_mul_overflow(entry->stride, (uint64_t)entry->count, &bytes)
            || __builtin_add_overflow(end, bytes, &end) || end > (uint64_t)INT64_MAX - SPC_SEGMENT_PAGE) {
            return SPC_EINVAL;
        }
        end = spc_round_up(end, SPC_SEGMENT_PAGE);
    }
    directory->size_bytes = end;
    return end <= SIZE_MAX ? SPC_OK : SPC_EINVAL;
}

/* 0 to 2 are for the streams, even if they are closed: a node would open its own there. */
static int above_streams(int *descriptor) {
    int moved = *descriptor;
    if (moved > 2) {
        return SPC_OK;
    }
    moved = fcntl(*descriptor, F_DUPFD_CLOEXEC, 3);
    int error = errno;
    close(*descriptor);
    errno = error;
    *descriptor = moved;
    return moved < 0 ? SPC_ESYSTEM : SPC_OK;
}

int spc_segment_create(const spc_segment_plan_t *plan, int *descriptor, uint64_t *size_bytes) {
    spc_directory_shared_t directory = {
        .magic = SPC_SEGMENT_MAGIC,
        .version = SPC_SEGMENT_VERSION,
        .region_count = SPC_REGION_COUNT,
        .config = plan->config,
    };
    if (directory.config.made_ns == 0) {
        directory.config.made_ns = spc_clock_now_ns();
    }
    int status = lay_out(plan, &directory);
    if (status != SPC_OK) {
        return status;
    }
    int made;
    status = spc_platform_memory_create(plan->config.features, directory.size_bytes, &made);
    status = status == SPC_OK ? above_streams(&made) : status;
    if (status != SPC_OK) {
        return status;
    }
    void *page = mmap(NULL, SPC_SEGMENT_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, made, 0);
    if (page == MAP_FAILED) {
        close(made);
        return SPC_ENOMEM;
    }
    memcpy(page, &directory, sizeof directory);
    munmap(page, SPC_SEGMENT_PAGE);
    *descriptor = made;
    *size_bytes = directory.size_bytes;
    return SPC_OK;
}

static int check_directory(const spc_directory_shared_t *directory, uint64_t file_bytes) {
    if (directory->magic != SPC_SEGMENT_MAGIC) {
        return SPC_EINVAL;
    }
    if (directory->version != SPC_SEGMENT_VERSION || directory->region_count != SPC_REGION_COUNT) {
        return SPC_EVERSION;
    }
    /* The file may be longer: some systems round it up to their pages. */
    return directory->size_bytes <= file_bytes ? SPC_OK : SPC_EINVAL;
}

int spc_segment_attach(spc_segment_t *segment, int descriptor) {
    struct stat file;
    *segment = (spc_segment_t){.base = NULL};
    if (fstat(descriptor, &file) != 0) {
        return SPC_ESYSTEM;
    }
    if (file.st_size < SPC_SEGMENT_PAGE || (uint64_t)file.st_size > SIZE_MAX) {
        return SPC_EINVAL;
    }
    size_t size_bytes = (size_t)file.st_size;
    void *base = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (base == MAP_FAILED) {
        return SPC_ESYSTEM;
    }
    const spc_directory_shared_t *directory = base;
    int status = check_directory(directory, size_bytes);
    if (status != SPC_OK) {
        munmap(base, size_bytes);
        return status;
    }
    *segment = (spc_segment_t){.base = base, .size_bytes = size_bytes, .config = &directory->config};
    return SPC_OK;
}

void spc_segment_detach(spc_segment_t *segment) {
    if (segment->base != NULL) {
        munmap(segment->base, (size_t)segment->size_bytes);
    }
    *segment = (spc_segment_t){.base = NULL};
}

void *spc_segment_part(const spc_segment_t *segment, spc_region_t region, uint32_t index) {
    const spc_directory_entry_shared_t *entry = &directory_of(segment)->region[region];
    return index < entry->count ? segment->base + entry->offset + index * entry->stride : NULL;
}

uint64_t spc_segment_stride(const spc_segment_t *segment, spc_region_t region) {
    return directory_of(segment)->region[region].stride;
}

uint32_t spc_segment_box(const spc_segment_t *segment, uint32_t rank) {
    const uint16_t *box = spc_segment_part(segment, SPC_REGION_PLACE, 0);
    return box == NULL ? 0 : box[rank];
}

void spc_segment_set_boxes(const spc_segment_t *segment, const uint16_t *box_by_rank) {
    uint16_t *box = spc_segment_part(segment, SPC_REGION_PLACE, 0);
    if (box != NULL) {
        memcpy(box, box_by_rank, segment->config->nodes * sizeof(*box));
    }
}
