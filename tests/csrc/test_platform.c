/* SPDX-License-Identifier: MIT */
/* The platform, each feature with and without it, and the control groups on made-up files. */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/spc_cgroup.h"
#include "base/spc_error.h"
#include "base/spc_platform.h"

#define ALL_FEATURES ((1u << 6) - 1)

TEST(features_can_be_disabled) {
    CHECK_EQ_U(spc_platform_features(ALL_FEATURES), 0);
    CHECK_EQ_U(spc_platform_features(SPC_FEATURE_futex) & SPC_FEATURE_futex, 0);
    CHECK_EQ_U(spc_platform_features(0) & ~ALL_FEATURES, 0);
    CHECK_EQ_U(spc_platform_features(0), spc_platform_features(0));
}

/* ---- memory */

static void use_memory(uint32_t features) {
    int descriptor = -1;
    uint64_t size_bytes = 3 * 65536 + 4096;
    CHECK_OK(spc_platform_memory_create(features, size_bytes, &descriptor));
    CHECK(fcntl(descriptor, F_GETFD) & FD_CLOEXEC);
    unsigned char *one = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    unsigned char *two = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    CHECK(one != MAP_FAILED && two != MAP_FAILED && one != two);
    for (uint64_t i = 0; i < size_bytes; i++) {
        CHECK_EQ(one[i], 0);
    }
    one[size_bytes - 1] = 7;
    CHECK_EQ(two[size_bytes - 1], 7);
    munmap(one, size_bytes);
    munmap(two, size_bytes);
    close(descriptor);
}

TEST(memory_is_zeroed_and_shared) {
    use_memory(spc_platform_features(0));
    use_memory(0);
}

TEST(two_memories_are_two) {
    int one, two;
    CHECK_OK(spc_platform_memory_create(0, 4096, &one));
    CHECK_OK(spc_platform_memory_create(0, 4096, &two));
    struct stat first, second;
    CHECK(fstat(one, &first) == 0 && fstat(two, &second) == 0);
    CHECK(first.st_ino != second.st_ino);
    CHECK_EQ(first.st_nlink, 0); /* no name left */
    close(one);
    close(two);
}

TEST(sealed_memory_keeps_its_size) {
    uint32_t features = spc_platform_features(0);
    if (!(features & SPC_FEATURE_memfd)) {
        return;
    }
    int descriptor;
    CHECK_OK(spc_platform_memory_create(features, 8192, &descriptor));
    CHECK_EQ(ftruncate(descriptor, 4096), -1);
    CHECK_EQ(errno, EPERM);
    CHECK_EQ(ftruncate(descriptor, 16384), -1);
    close(descriptor);
    CHECK(spc_platform_memory_is_sparse(features));
    CHECK(!spc_platform_memory_is_sparse(0));
}

TEST(impossible_sizes_are_refused) {
    int descriptor;
    CHECK_EQ(spc_platform_memory_create(0, 0, &descriptor), SPC_EINVAL);
    CHECK_EQ(spc_platform_memory_create(spc_platform_features(0), UINT64_MAX, &descriptor), SPC_EINVAL);
}

/* Much more than the mount can ever hold: an error at once, instead of SIGBUS at the first touch. */
TEST(full_mount_is_an_error) {
    uint64_t room_bytes = spc_platform_memory_room();
    if (room_bytes == UINT64_MAX || room_bytes > UINT64_MAX / 16) {
        printf("    (not tried: the room of the shared-memory mount is unknown)\n");
        return;
    }
    int descriptor = -2;
    errno = 0;
    CHECK_EQ(spc_platform_memory_create(0, 8 * room_bytes + (UINT64_C(1) << 40), &descriptor), SPC_ESYSTEM);
    CHECK(errno == ENOSPC || errno == EFBIG);
    CHECK_EQ(descriptor, -2);
}

/* ---- sleeping */

TEST(changed_word_does_not_sleep) {
    _Atomic uint32_t word = 5;
    spc_platform_sleep(spc_platform_features(0), &word, 4, UINT64_MAX);
    spc_platform_sleep(0, &word, 4, UINT64_MAX);
}

TEST(sleep_ends_by_itself) {
    _Atomic uint32_t word = 5;
    spc_platform_sleep(spc_platform_features(0), &word, 5, 1000000);
    spc_platform_sleep(0, &word, 5, 1000000);
}

typedef struct bed {
    _Atomic uint32_t word;
    uint32_t features;
} bed_t;

static void sleep_or_wake(int rank, int size, void *argument) {
    bed_t *bed = argument;
    if (rank == size - 1) {
        atomic_store(&bed->word, 1);
        spc_platform_wake(bed->features, &bed->word);
        return;
    }
    while (atomic_load(&bed->word) == 0) {
        spc_platform_sleep(bed->features, &bed->word, 0, UINT64_MAX);
    }
}

TEST(wake_reaches_all) {
    for (long i = check_scale(100); i > 0; i--) {
        bed_t *bed = mmap(NULL, sizeof *bed, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        CHECK(bed != MAP_FAILED);
        bed->features = i % 2 ? spc_platform_features(0) : 0;
        (i % 4 < 2 ? check_processes : check_threads)(4, sleep_or_wake, bed);
        munmap(bed, sizeof *bed);
    }
}

/* ---- the owner's mark */

static void look_at_mark(int rank, int size, void *argument) {
    (void)rank;
    (void)size;
    CHECK(!spc_owner_mark_holds(argument));
}

TEST(mark_is_not_inherited) {
    for (int disabled = 0; disabled < 2; disabled++) {
        spc_owner_mark_t mark;
        CHECK_OK(spc_owner_mark_init(&mark, disabled ? 0 : spc_platform_features(0)));
        CHECK(spc_owner_mark_holds(&mark));
        check_processes(2, look_at_mark, &mark);
        CHECK(spc_owner_mark_holds(&mark));
        spc_owner_mark_fini(&mark);
        CHECK(!spc_owner_mark_holds(&mark));
    }
}

/* ---- cores and memory */

static void use_one_core(int rank, int size, void *argument) {
    (void)rank;
    (void)size;
    (void)argument;
#ifdef __linux__
    cpu_set_t set;
    CHECK_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    int first = 0;
    while (!CPU_ISSET(first, &set)) {
        first++;
    }
    CPU_ZERO(&set);
    CPU_SET(first, &set);
    CHECK_EQ(sched_setaffinity(0, sizeof set, &set), 0);
    CHECK(spc_platform_cores() <= 1.0);
#endif
}

TEST(cores_follow_the_mask) {
    double cores = spc_platform_cores();
    CHECK(cores > 0 && cores <= (double)sysconf(_SC_NPROCESSORS_CONF));
    check_processes(1, use_one_core, NULL);
    CHECK_EQ_D(spc_platform_cores(), cores);
}

/* Two processes on one core: each waits for it until the kernel has counted so. */
static void wait_for_the_core(int rank, int size, void *argument) {
    use_one_core(rank, size, argument);
    uint64_t first_ns, now_ns = 0;
    if (spc_platform_core_wait(&first_ns)) {
        do {
            CHECK(spc_platform_core_wait(&now_ns));
            CHECK(now_ns >= first_ns);
        } while (now_ns - first_ns < 1000000);
    }
}

TEST(waiting_for_a_core_is_counted) {
    check_processes(2, wait_for_the_core, NULL);
}

TEST(memory_is_limited) {
    uint64_t limit_bytes = spc_platform_memory_limit();
    CHECK(limit_bytes > UINT64_C(1) << 20);
    CHECK(limit_bytes < UINT64_C(1) << 60);
}

/* ---- control groups, in a directory of the test's own */

static char root[] = "/tmp/spcomm-test-cgroup-XXXXXX";

static void put(const char *path, const char *text) {
    char whole[512];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    for (char *slash = strchr(whole + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        CHECK(mkdir(whole, 0700) == 0 || errno == EEXIST);
        *slash = '/';
    }
    FILE *file = fopen(whole, "w");
    CHECK(file != NULL);
    CHECK(fputs(text, file) >= 0);
    CHECK_EQ(fclose(file), 0);
}

TEST(no_files_no_limit) {
    CHECK_EQ_D(spc_cgroup_cores("/nowhere/at/all"), HUGE_VAL);
    CHECK_EQ_U(spc_cgroup_memory_bytes("/nowhere/at/all"), UINT64_MAX);
}

TEST(version_2_counts_all_levels) {
    put("/proc/self/cgroup", "0::/user/class/node\n");
    put("/sys/fs/cgroup/user/class/node/cpu.max", "max 100000\n");
    CHECK_EQ_D(spc_cgroup_cores(root), HUGE_VAL);
    put("/sys/fs/cgroup/user/cpu.max", "150000 100000\n");
    CHECK_EQ_D(spc_cgroup_cores(root), 1.5);
    put("/sys/fs/cgroup/user/class/cpu.max", "400000 100000\n");
    CHECK_EQ_D(spc_cgroup_cores(root), 1.5);
    put("/sys/fs/cgroup/user/class/node/cpu.max", "50000 100000\n");
    CHECK_EQ_D(spc_cgroup_cores(root), 0.5);
    CHECK_EQ_U(spc_cgroup_memory_bytes(root), UINT64_MAX);
    put("/sys/fs/cgroup/user/class/memory.max", "268435456\n");
    put("/sys/fs/cgroup/user/memory.max", "max\n");
    CHECK_EQ_U(spc_cgroup_memory_bytes(root), 268435456);
}

TEST(kills_of_the_innermost_group_are_counted) {
    CHECK_EQ_U(spc_cgroup_oom_kills("/nowhere/at/all"), 0);
    put("/proc/self/cgroup", "4:memory:/\n0::/user/class/node\n");
    CHECK_EQ_U(spc_cgroup_oom_kills(root), 0);
    put("/sys/fs/cgroup/user/memory.events", "low 0\noom 9\noom_kill 7\n");
    CHECK_EQ_U(spc_cgroup_oom_kills(root), 7);
    put("/sys/fs/cgroup/user/class/memory.events", "low 0\nhigh 0\nmax 5\noom 3\noom_kill 2\n");
    CHECK_EQ_U(spc_cgroup_oom_kills(root), 2);
    put("/proc/self/cgroup", "4:memory:/docker/0123\n");
    CHECK_EQ_U(spc_cgroup_oom_kills(root), 0);
    put("/sys/fs/cgroup/memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n");
    CHECK_EQ_U(spc_cgroup_oom_kills(root), 4);
}

/* A container sees its own group as the root, under a name that leads nowhere. */
TEST(unseen_groups_are_skipped) {
    put("/proc/self/cgroup",
        "5:memory:/docker/0123\n4:cpu,cpuacct:/docker/0123\n3:cpuset:/\n0::/docker/0123\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    CHECK_EQ_D(spc_cgroup_cores(root), HUGE_VAL);
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "250000\n");
    CHECK_EQ_D(spc_cgroup_cores(root), 2.5);
    CHECK_EQ_U(spc_cgroup_memory_bytes(root), UINT64_MAX);
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"); /* version 1's "none" */
    CHECK_EQ_U(spc_cgroup_memory_bytes(root), UINT64_MAX);
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "67108864\n");
    CHECK_EQ_U(spc_cgroup_memory_bytes(root), 67108864);
}

TEST(odd_lines_do_no_harm) {
    put("/proc/self/cgroup", "\n:\n0\n0:\n7:cpu\n0::/../../../etc\nx::y\n4:cpufreq:/\n");
    put("/sys/fs/cgroup/cpufreq/cpu.cfs_quota_us", "1\n");
    put("/sys/fs/cgroup/cpu.max", "nonsense\n");
    CHECK_EQ_D(spc_cgroup_cores(root), HUGE_VAL);
}

int main(void) {
    CHECK(mkdtemp(root) != NULL);
    check_all();
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    CHECK_EQ(system(command), 0);
    return check_done();
}
