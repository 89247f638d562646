/* SPDX-License-Identifier: MIT */
#include "base/spc_cgroup.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 4096 };

/* Folds the limit of one group, the directory `path`, into *limit. */
typedef void (*spc_cgroup_fold_fn)(const char *path, void *limit);

/* The first line of a file without its end; false if there is none. */
static bool read_line(const char *directory, const char *name, char *line, size_t line_bytes) {
    char path[PATH_BYTES];
    int length = snprintf(path, sizeof path, "%s/%s", directory, name);
    if (length < 0 || (size_t)length >= sizeof path) {
        return false;
    }
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    bool found = fgets(line, (int)line_bytes, file) != NULL;
    fclose(file);
    return found;
}

/* Parses a number; false for values that mean no limit: "max", -1, an absent file. */
static bool read_number(const char *directory, const char *name, double *number) {
    char line[64];
    char *end;
    if (!read_line(directory, name, line, sizeof line)) {
        return false;
    }
    *number = strtod(line, &end);
    return end != line && *number >= 0;
}

static void fold_cores(double quota, double period, double *limit) {
    if (quota > 0 && period > 0 && quota / period < *limit) {
        *limit = quota / period;
    }
}

static void fold_cores_v2(const char *path, void *limit) {
    char line[64];
    double quota, period;
    if (read_line(path, "cpu.max", line, sizeof line) && sscanf(line, "%lf %lf", &quota, &period) == 2) {
        fold_cores(quota, period, limit);
    }
}

static void fold_cores_v1(const char *path, void *limit) {
    double quota, period;
    if (read_number(path, "cpu.cfs_quota_us", &quota) && read_number(path, "cpu.cfs_period_us", &period)) {
        fold_cores(quota, period, limit);
    }
}

static void fold_memory(const char *path, const char *name, uint64_t *limit) {
    double bytes;
    if (read_number(path, name, &bytes) && bytes < 9e18 && (uint64_t)bytes < *limit) {
        *limit = (uint64_t)bytes;
    }
}

static void fold_memory_v2(const char *path, void *limit) {
    fold_memory(path, "memory.max", limit);
}

static void fold_memory_v1(const char *path, void *limit) {
    fold_memory(path, "memory.limit_in_bytes", limit);
}

typedef struct spc_cgroup_kills {
    bool found; /* in a group further in */
    uint64_t count;
} spc_cgroup_kills_t;

static void fold_kills(const char *directory, const char *name, spc_cgroup_kills_t *kills) {
    char text[PATH_BYTES];
    int length = snprintf(text, sizeof text, "%s/%s", directory, name);
    FILE *file = kills->found || length < 0 || (size_t)length >= sizeof text ? NULL : fopen(text, "re");
    if (file == NULL) {
        return;
    }
    while (fgets(text, sizeof text, file) != NULL) {
        kills->found = sscanf(text, "oom_kill %" SCNu64, &kills->count) == 1 || kills->found;
    }
    fclose(file);
}

static void fold_kills_v2(const char *path, void *kills) {
    fold_kills(path, "memory.events", kills);
}

static void fold_kills_v1(const char *path, void *kills) {
    fold_kills(path, "memory.oom_control", kills);
}

/* `mount` + `group`, then without the last component, and so on up to `mount` itself. */
static void fold_upwards(const char *root, const char *mount, const char *group, spc_cgroup_fold_fn fold,
                         void *limit) {
    char path[PATH_BYTES];
    int length = snprintf(path, sizeof path, "%s%s", root, mount);
    if (length < 0 || (size_t)length + strlen(group) >= sizeof path || strstr(group, "/..") != NULL) {
        return;
    }
    char *top = path + length;
    strcpy(top, group);
    for (;;) {
        fold(path, limit);
        char *slash = strrchr(top, '/');
        if (slash == NULL) {
            return;
        }
        *slash = '\0';
    }
}

/* Whether `name` is one of the comma-separated controllers. */
static bool is_listed(const char *controllers, const char *name) {
    size_t length = strlen(name);
    for (const char *at = controllers; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

/* One line of /proc/self/cgroup: "number:controllers:group"; version 2 has no controllers. */
static void fold_line(const char *root, char *line, const char *controller, spc_cgroup_fold_fn fold_v1,
                      spc_cgroup_fold_fn fold_v2, void *limit) {
    line[strcspn(line, "\n")] = '\0';
    char *controllers = strchr(line, ':');
    char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (group == NULL) {
        return;
    }
    *group++ = '\0';
    controllers++;
    if (*controllers == '\0') {
        fold_upwards(root, "/sys/fs/cgroup", group, fold_v2, limit);
        fold_upwards(root, "/sys/fs/cgroup/unified", group, fold_v2, limit); /* beside version 1 */
    } else if (is_listed(controllers, controller)) {
        char mount[64];
        snprintf(mount, sizeof mount, "/sys/fs/cgroup/%s", controller);
        fold_upwards(root, mount, group, fold_v1, limit);
    }
}

static void fold_all(const char *root, const char *controller, spc_cgroup_fold_fn fold_v1,
                     spc_cgroup_fold_fn fold_v2, void *limit) {
    char line[PATH_BYTES];
    snprintf(line, sizeof line, "%s/proc/self/cgroup", root);
    FILE *file = fopen(line, "re");
    if (file == NULL) {
        return;
    }
    while (fgets(line, sizeof line, file) != NULL) {
        fold_line(root, line, controller, fold_v1, fold_v2, limit);
    }
    fclose(file);
}

double spc_cgroup_cores(const char *root) {
    double limit = HUGE_VAL;
    fold_all(root, "cpu", fold_cores_v1, fold_cores_v2, &limit);
    return limit;
}

uint64_t spc_cgroup_memory_bytes(const char *root) {
    uint64_t limit = UINT64_MAX;
    fold_all(root, "memory", fold_memory_v1, fold_memory_v2, &limit);
    return limit;
}

uint64_t spc_cgroup_oom_kills(const char *root) {
    spc_cgroup_kills_t kills = {0};
    fold_all(root, "memory", fold_kills_v1, fold_kills_v2, &kills);
    return kills.count;
}
