/* SPDX-License-Identifier: MIT */
/*
 * spc_cgroup: limits of processor time and memory of this process's control group, versions 1 and 2, and how many
 * processes the kernel killed there.
 *
 * Looks at the group named in /proc/self/cgroup and at all groups above it; the smallest limit counts. Groups
 * that cannot be seen are skipped: a container often sees its own group as the root. `root` goes before every
 * path: "" for the machine, a directory with the same files for a test. Without such files there is no limit.
 */
#ifndef SPC_CGROUP_H
#define SPC_CGROUP_H

#include <stdint.h>

/* In cores; fractions count. HUGE_VAL (infinite): no limit. */
double spc_cgroup_cores(const char *root);

/* UINT64_MAX: no limit. */
uint64_t spc_cgroup_memory_bytes(const char *root);

/* The processes of the group that the kernel has killed because memory ran out; 0 where nothing counts them. Of the
 * innermost group that can be seen. */
uint64_t spc_cgroup_oom_kills(const char *root);

#endif
