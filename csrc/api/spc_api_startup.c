/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* on_exit, program_invocation_name */
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/spc_api_private.h"
#include "base/spc_process.h"
#include "fork/spc_failures.h"
#include "fork/spc_infile.h"
#include "fork/spc_join.h"
#include "fork/spc_launcher.h"
#include "fork/spc_meet.h"

#define CLOSE_AT_EXIT_NS INT64_C(10000000000)
#define SOURCE_BYTES 256
#define CODE_VARIABLE "SPCOMM_CODE" /* what the server asks for */

/* ---- all communicators of the process, which is one node. A program can call spcomm_startup anywhere, and may forget
 * spcomm_shutdown: so they are remembered. */

static _Atomic(spcomm_t *) all;
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER; /* two threads may call spcomm_startup at once */

/* The first handle, linked by `next`. */
static spcomm_t *last_made(void) {
    /* Acquire pairs with the release in keep: the structure is complete. */
    return atomic_load_explicit(&all, memory_order_acquire);
}

spcomm_t *spcomm_current(void) {
    spcomm_t *last = last_made();
    return last == NULL ? NULL : last->root;
}

/* The first one is the root. */
static void keep(spcomm_t *comm) {
    comm->next = atomic_load_explicit(&all, memory_order_relaxed);
    /* Release pairs with the acquire in last_made. */
    while (!atomic_compare_exchange_weak_explicit(&all, &comm->next, comm, memory_order_release,
                                                  memory_order_relaxed)) {
    }
}

static const char *find_program(void) {
#ifdef __GLIBC__
    return program_invocation_name;
#else
    return "./program";
#endif
}

/* spc_comm_options_t.handle: the handlers of messages that have come, in all communicators. */
static int run_all_handlers(void *argument) {
    (void)argument;
    int status = SPC_OK;
    for (spcomm_t *comm = last_made(); comm != NULL && status == SPC_OK; comm = comm->next) {
        status = spc_api_run_handlers(comm);
    }
    return status;
}

/* ---- membership: the run that this process was started for */

typedef struct membership {
    int descriptor;
    uint32_t rank;
    uint32_t size;
    int32_t group;
    int report; /* -1: none */
} membership_t;

#define VARIABLE \
    "SPCOMM_NODE" /* "fd:rank:size:device:inode:launcher_pid:group"; the last one may be missing */
#define REPORT_VARIABLE "SPCOMM_REPORT"
/* The LD_LIBRARY_PATH from before the launcher added the folder of the MPI library. */
#define LOADER_VARIABLE "LD_LIBRARY_PATH"
#define RESTORED_VARIABLE "SPCOMM_LIBRARY_PATH"
#define JOINED_VARIABLE "SPCOMM_JOINED" /* "pid:parent_pid:rank:size" of a process that is a node */
#define JOINED_BYTES 64
#define FIELDS 7
#define FIELDS_MIN 6

enum { PID, PARENT, JOINED_RANK, JOINED_SIZE, JOINED_FIELDS };
enum { FD, RANK, SIZE, DEVICE, INODE, LAUNCHER, GROUP };

/* Parses decimal numbers with colons between them; returns how many, or 0 if the text is anything else. */
static int parse(const char *text, unsigned long long *fields) {
    int count = 0;
    for (;;) {
        char *end;
        if (count == FIELDS || *text < '0' || *text > '9') {
            return 0;
        }
        fields[count++] = strtoull(text, &end, 10);
        if (*end == '\0') {
            return count;
        }
        if (*end != ':') {
            return 0;
        }
        text = end + 1;
    }
}

/* A program between the launcher and this one may have closed the descriptor, or opened another file under its
 * number. */
static bool is_segment(const unsigned long long *fields) {
    struct stat found;
    return fields[FD] <= INT32_MAX && fstat((int)fields[FD], &found) == 0
           && (unsigned long long)found.st_dev == fields[DEVICE]
           && (unsigned long long)found.st_ino == fields[INODE];
}

static void close_on_exec(int descriptor) {
    int flags = fcntl(descriptor, F_GETFD);
    if (flags >= 0) {
        (void)fcntl(descriptor, F_SETFD, flags | FD_CLOEXEC);
    }
}

/* The pipe where a failing node reports its reason; -1: none. It must be a pipe, as the number of a closed descriptor
 * may stand for another file by now. */
static int find_report(const char *text) {
    unsigned long long fields[FIELDS];
    struct stat found;
    if (text == NULL || parse(text, fields) != 1 || fields[0] > INT32_MAX
        || fstat((int)fields[0], &found) != 0 || !S_ISFIFO(found.st_mode)) {
        return -1;
    }
    close_on_exec((int)fields[0]);
    return (int)fields[0];
}

/* The loader has read its path; what this node starts gets the path that the user gave. */
static void restore_loader_path(void) {
    const char *before = getenv(RESTORED_VARIABLE);
    if (before == NULL) {
        return;
    }
    if (*before != '\0') {
        (void)setenv(LOADER_VARIABLE, before, 1);
    } else {
        (void)unsetenv(LOADER_VARIABLE);
    }
    (void)unsetenv(RESTORED_VARIABLE);
}

/* Whether this process was started as a node. Removes SPCOMM_NODE and SPCOMM_REPORT from the environment, so that
 * programs it starts are no nodes, and keeps both descriptors from passing to them. False: the descriptor no longer is
 * that segment. */
static bool find_membership(membership_t *member) {
    const char *text = getenv(VARIABLE);
    unsigned long long fields[FIELDS] = {0};
    int count = text != NULL ? parse(text, fields) : 0;
    bool is_node = count >= FIELDS_MIN && fields[SIZE] <= SPC_NODES_MAX && fields[RANK] < fields[SIZE]
                   && fields[GROUP] <= INT32_MAX && is_segment(fields);
    member->report = is_node ? find_report(getenv(REPORT_VARIABLE)) : -1;
    unsetenv(VARIABLE);
    unsetenv(REPORT_VARIABLE);
    restore_loader_path();
    if (!is_node) {
        return false;
    }
    close_on_exec((int)fields[FD]);
    member->descriptor = (int)fields[FD];
    member->rank = (uint32_t)fields[RANK];
    member->size = (uint32_t)fields[SIZE];
    member->group = (int32_t)fields[GROUP];
    return true;
}

/* Refuses a program that a node has executed in its own place; for a process that is no node yet. */
static int check_executed(void) {
    const char *text = getenv(JOINED_VARIABLE);
    unsigned long long fields[FIELDS];
    if (text == NULL || parse(text, fields) != JOINED_FIELDS || fields[PID] != (unsigned long long)getpid()
        || fields[PARENT] != (unsigned long long)getppid()) {
        return SPC_OK;
    }
    return spc_api_refuse(SPC_EINVAL,
                          "spcomm_startup(): this process was node %llu of %llu until it executed this "
                          "program in its own place, "
                          "and this program is no node; a node may execute a program before its first "
                          "startup, under spcomm run "
                          "with --start exec; later, start it beside the node (fork, then exec)",
                          fields[JOINED_RANK], fields[JOINED_SIZE]);
}

/* Records in the environment that this process is a node, for check_executed. */
static void mark_joined(uint32_t rank, uint32_t size) {
    char text[JOINED_BYTES];
    (void)snprintf(text, sizeof(text), "%ld:%ld:%u:%u", (long)getpid(), (long)getppid(), rank, size);
    (void)setenv(JOINED_VARIABLE, text,
                 1); /* without memory for it, the executed program is a run of its own */
}

/* ---- the numbers */

/* The arguments of spcomm_startup, including those from the infile. */
typedef struct numbers {
    int32_t local_nodes;
    int32_t total_nodes;
    int32_t group_id;
    char source[SOURCE_BYTES]; /* the end of a sentence: the file that gave some of them; "": none */
    const char *infile; /* that names a server; NULL: all nodes are here */
} numbers_t;

static int refuse_number(const char *name, int32_t value, const char *allowed) {
    return spc_api_refuse(SPC_EINVAL, "spcomm_startup(%s=%d): %s", name, value, allowed);
}

static int check_signs(const numbers_t *numbers) {
    if (numbers->local_nodes < 0) {
        return refuse_number("local_nodes", numbers->local_nodes, "the nodes of this machine are 0 or more");
    }
    if (numbers->total_nodes < 0) {
        return refuse_number("total_nodes", numbers->total_nodes, "the nodes of the run are 0 or more");
    }
    if (numbers->group_id < 0) {
        return refuse_number("group_id", numbers->group_id, "a group is 0 or more");
    }
    return SPC_OK;
}

/* Takes fields that are 0 from the file. */
static int read_infile(const char *path, numbers_t *numbers) {
    char message[SPC_INFILE_MESSAGE_BYTES];
    spc_infile_t found;
    int status = spc_infile_read(path, &found, message, sizeof(message));
    if (status != SPC_OK) {
        return spc_api_refuse(status, "spcomm_startup(infile): %s", message);
    }
    numbers->infile = found.server[0] != '\0' ? path : NULL;
    numbers->local_nodes = numbers->local_nodes != 0 ? numbers->local_nodes : found.local_nodes;
    numbers->local_nodes = numbers->local_nodes != 0 ? numbers->local_nodes : (int32_t)found.rank_count;
    numbers->total_nodes = numbers->total_nodes != 0 ? numbers->total_nodes : found.total_nodes;
    numbers->group_id = numbers->group_id != 0 ? numbers->group_id : found.group_id;
    (void)snprintf(numbers->source, sizeof(numbers->source), " (what was 0 in the call comes from %s)", path);
    return SPC_OK;
}

/* The nodes of a run go over boxes that meet at a server. */
static bool is_one_of_several(const numbers_t *numbers) {
    return numbers->infile != NULL
           && (numbers->total_nodes == 0 || numbers->total_nodes > numbers->local_nodes);
}

static int check_total(const numbers_t *numbers) {
    int32_t local = numbers->local_nodes, total = numbers->total_nodes;
    if (total != 0 && total < local) {
        return spc_api_refuse(
            SPC_EINVAL,
            "spcomm_startup(local_nodes=%d, total_nodes=%d): the run cannot have fewer nodes than "
            "this machine; give total_nodes=%d or 0%s",
            local, total, local, numbers->source);
    }
    return SPC_OK;
}

/* Checks the numbers against an existing run: `here` of its `size` nodes are in this box. */
static int check_against(const numbers_t *numbers, uint32_t here, uint32_t size, int32_t group) {
    const char *names[] = {"local_nodes", "total_nodes"};
    int32_t values[] = {numbers->local_nodes, numbers->total_nodes};
    uint32_t right[] = {here, size};
    for (int i = 0; i < 2; i++) {
        if (values[i] == 0 || (uint32_t)values[i] == right[i]) {
            continue;
        }
        if (right[i] != size) {
            return spc_api_refuse(SPC_EINVAL,
                                  "spcomm_startup(%s=%d): this run has %u of its %u nodes in this box; give "
                                  "%u or 0%s",
                                  names[i], values[i], here, size, here, numbers->source);
        }
        return spc_api_refuse(SPC_EINVAL,
                              "spcomm_startup(%s=%d): this run was started with %u node%s; give %u or 0, or "
                              "start it with spcomm run -n %d%s",
                              names[i], values[i], size, size == 1 ? "" : "s", size, values[i],
                              numbers->source);
    }
    if (numbers->group_id != 0 && numbers->group_id != group) {
        return spc_api_refuse(SPC_EINVAL,
                              "spcomm_startup(group_id=%d): this run has group %d; give %d or 0%s",
                              numbers->group_id, group, group, numbers->source);
    }
    return SPC_OK;
}

/* The number of nodes in the box whose segment this is. */
static int count_here(int descriptor, uint32_t size, uint32_t *here) {
    spc_segment_t segment;
    int status = spc_segment_attach(&segment, descriptor);
    if (status != SPC_OK) {
        return spc_api_fail(NULL, status, "spcomm_startup()");
    }
    *here = 0;
    for (uint32_t rank = 0; rank < size; rank++) {
        *here += spc_segment_is_here(&segment, rank);
    }
    spc_segment_detach(&segment);
    return SPC_OK;
}

/* The same in the run that this process has joined. */
static uint32_t count_neighbors(const spcomm_t *root) {
    uint32_t here = 0;
    for (uint32_t rank = 0; rank < root->size; rank++) {
        here += spc_comm_box(root->core, rank) == spc_comm_box(root->core, root->rank);
    }
    return here;
}

/* Outside of a launcher: how many nodes this machine is to have. */
static int choose_nodes(const numbers_t *numbers, uint32_t *nodes) {
    int32_t local = numbers->local_nodes != 0 ? numbers->local_nodes : numbers->total_nodes;
    local = local != 0 ? local : 1;
    if (local > SPC_NODES_MAX) {
        return spc_api_refuse(SPC_EINVAL,
                              "spcomm_startup(): %d nodes are asked for, and a run has at most %d%s", local,
                              SPC_NODES_MAX, numbers->source);
    }
    if (numbers->total_nodes > local) {
        return spc_api_refuse(
            SPC_EINVAL,
            "spcomm_startup(local_nodes=%d, total_nodes=%d): the other nodes would be on other machines, and "
            "no infile says where they meet (server = \"HOST:PORT\"); give %d or 0, or local_nodes=%d%s",
            local, numbers->total_nodes, local, numbers->total_nodes, numbers->source);
    }
    *nodes = (uint32_t)local;
    return SPC_OK;
}

/* ---- a segment of its own */

/* Parses SPCOMM_DISABLE, "memfd,futex": for tests of the fallbacks. Other names belong to other programs. */
static uint32_t disabled_features(void) {
    const char *text = getenv("SPCOMM_DISABLE");
    uint32_t mask = 0;
    while (text != NULL && *text != '\0') {
        size_t length = strcspn(text, ",");
#define MATCH(name, bit)                                                \
    if (length == strlen(#name) && strncmp(text, #name, length) == 0) { \
        mask |= SPC_FEATURE_##name;                                     \
    }
        SPC_FEATURES(MATCH)
#undef MATCH
        text += length + (text[length] == ',' ? 1 : 0);
    }
    return mask;
}

static int make_segment(uint32_t nodes, int *descriptor) {
    const char *wait = getenv("SPCOMM_WAIT");
    spc_config_t config = {
        .nodes = nodes,
        .features = spc_platform_features(disabled_features()),
        .sleep_at_once = wait != NULL && strcmp(wait, "sleep") == 0,
    };
    spc_segment_plan_t plan;
    uint64_t size_bytes;
    int status = spc_comm_plan(&config, &plan);
    status = status == SPC_OK ? spc_segment_create(&plan, descriptor, &size_bytes) : status;
    return status == SPC_OK
               ? SPC_OK
               : spc_api_fail(NULL, status, "spcomm_startup(): shared memory for %u nodes", nodes);
}

static int check_threads(uint32_t nodes) {
    uint32_t threads = nodes > 1 ? spc_fork_other_threads() : 0;
    if (threads != 0) {
        return spc_api_refuse(
            SPC_EINVAL,
            "spcomm_startup(local_nodes=%u): this process has %u other thread%s, which a fork "
            "would lose; call it before they start, or use spcomm run -n %u",
            nodes, threads, threads == 1 ? "" : "s", nodes);
    }
    return SPC_OK;
}

/* Forks `nodes` nodes on this machine. `meet`: the others are elsewhere. */
static int fork_nodes(uint32_t nodes, int descriptor, const spc_meet_t *meet, spc_fork_t **fork,
                      uint32_t *rank) {
    const spc_fork_options_t options = {
        .descriptor = descriptor, .nodes = meet != NULL ? meet->total_nodes : nodes, .meet = meet};
    int status = check_threads(nodes);
    if (status != SPC_OK) {
        return status;
    }
    status = spc_fork_nodes(&options, fork, rank);
    return status == SPC_OK ? SPC_OK
                            : spc_api_fail(NULL, status,
                                           "spcomm_startup(local_nodes=%u): that many cannot be started; try "
                                           "fewer, or raise the limits (ulimit -n, -u, -v)",
                                           nodes);
}

/* ---- the end of the process */

/* 0: none. */
static uint64_t inode_of(int descriptor) {
    struct stat found;
    return fstat(descriptor, &found) == 0 ? (uint64_t)found.st_ino : 0;
}

/* Another node's end is why this node fails: its exit code is not the first failure of the run. The frame is that of
 * spc_fork.h: rank, kind, length, text. */
static void report_loss(const spcomm_t *comm) {
    static const char text[] = "NodeLostError"; /* under Python's name */
    unsigned char frame[SPC_REPORT_HEADER + sizeof(text) - 1] = {
        comm->rank & 0xff, comm->rank >> 8 & 0xff, 0, 0, SPC_REPORT_LOST, sizeof(text) - 1, 0};
    memcpy(frame + SPC_REPORT_HEADER, text, sizeof(text) - 1);
    spc_process_write_report(comm->report, frame, sizeof(frame));
}

/* This thread's last failure was caused by lost nodes. */
static bool was_loss(void) {
    const int status = spc_api_last_outcome()->status;
    return status == SPC_ELOST || status == SPC_EFINISHED || status == SPC_EDISCONNECTED;
}

static void leave_at_exit(int exit_status) {
    spcomm_t *comm = spcomm_current();
    if (comm == NULL || spc_comm_usable(comm->core) == SPC_EFORKED) {
        return;
    }
    if (exit_status == 0) {
        if (comm->at_end != NULL && spc_comm_usable(comm->core) == SPC_OK) {
            comm->at_end();
        }
        if (spc_comm_usable(comm->core) == SPC_OK && spcomm_shutdown(comm, CLOSE_AT_EXIT_NS) != SPC_OK) {
            fprintf(stderr, "spcomm: %s\n", spcomm_last_error());
        }
    } else if (comm->report >= 0 && was_loss() && inode_of(comm->report) == comm->report_inode) {
        report_loss(comm);
    }
}

#ifdef __GLIBC__
static void on_end(int exit_status, void *argument) {
    (void)argument;
    leave_at_exit(exit_status & 0xff);
}

static void watch_exit(spcomm_t *comm) {
    (void)spc_fork_wait_at_exit(comm->fork); /* runs after the other handler */
    (void)on_exit(on_end, NULL);
}
#else
/* Without the exit status every end by exit() counts as a success. */
static void on_end(void) {
    spcomm_t *comm = spcomm_current();
    int exit_code = 0;
    leave_at_exit(0);
    if (spc_comm_usable(comm->core) != SPC_EFORKED) {
        (void)spc_fork_wait(comm->fork, 0, &exit_code);
    }
    if (exit_code != 0) {
        fflush(NULL);
        _exit(exit_code);
    }
}

static void watch_exit(spcomm_t *comm) {
    (void)comm;
    (void)atexit(on_end);
}
#endif

/* ---- joining */

/* Wraps a core, and leaves it on failure, so that no node waits for it: SPC_ENOMEM. */
static int make_comm(spc_comm_t *core, spcomm_t *root, spcomm_t **comm) {
    spcomm_t *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        (void)spc_comm_close(core, 0);
        spc_comm_destroy(core);
        return SPC_ENOMEM;
    }
    made->core = core;
    made->rank = spc_comm_rank(core);
    made->size = spc_comm_size(core);
    made->start_ns = spc_comm_config(core)->made_ns;
    made->root = root != NULL ? root : made;
    made->group = made->root->group;
    made->report = made->root->report;
    pthread_mutex_init(&made->lock, NULL);
    *comm = made;
    return SPC_OK;
}

/* The caller's descriptor stays open. */
static int join(const membership_t *member, spc_fork_t *fork, spcomm_t **comm) {
    const spc_comm_options_t options = {
        .descriptor = member->descriptor,
        .rank = member->rank,
        .check = fork != NULL ? spc_fork_check : NULL,
        .handle = run_all_handlers,
        .check_argument = fork,
        .own_signals = fork != NULL ? spc_fork_own_signals(fork) : 0,
    };
    spc_comm_t *core;
    int status = spc_comm_create(&options, &core);
    status = status == SPC_OK ? make_comm(core, NULL, comm) : status;
    if (status != SPC_OK) {
        return spc_api_fail(NULL, status, "spcomm_startup() as node %u of %u", member->rank, member->size);
    }
    (*comm)->program = find_program();
    (*comm)->group = member->group;
    (*comm)->report = member->report;
    (*comm)->report_inode = inode_of(member->report);
    (*comm)->fork = fork;
    if (fork != NULL) {
        mark_joined(member->rank, member->size);
    }
    return SPC_OK;
}

static bool has_numbers(const numbers_t *numbers) {
    return numbers->local_nodes != 0 || numbers->total_nodes != 0;
}

static int warn_of_wait(void *argument) {
    (void)argument; /* the supervisor, which a run of one node does not have */
    char *text = spc_api_report_wait(spcomm_current());
    fputs(text != NULL ? text : "", stderr);
    free(text);
    return SPC_OK;
}

static int join_alone(const numbers_t *numbers, spcomm_t **comm) {
    membership_t member = {.group = numbers->group_id, .report = -1};
    spc_fork_t *fork = NULL;
    int status = choose_nodes(numbers, &member.size);
    status = status == SPC_OK ? make_segment(member.size, &member.descriptor) : status;
    if (status != SPC_OK) {
        return status;
    }
    status = fork_nodes(member.size, member.descriptor, NULL, &fork, &member.rank);
    if (status == SPC_OK) {
        member.report = spc_fork_report_descriptor(fork);
        status = join(&member, fork, comm);
    }
    if (status == SPC_OK && member.size == 1) {
        (*comm)->asked_for_one = has_numbers(numbers);
        /* Without memory for it, endless waits stay endless. */
        (void)spc_comm_watch_itself((*comm)->core, warn_of_wait);
    }
    int error = errno;
    close(member.descriptor);
    errno = error;
    return status;
}

static int check_meeting(const numbers_t *numbers) {
    if (numbers->total_nodes == 0) {
        return spc_api_refuse(
            SPC_EINVAL,
            "spcomm_startup(total_nodes=0): %s names a server, so other machines have the rest of "
            "the nodes; say how many there are in all",
            numbers->infile);
    }
    if (numbers->total_nodes > SPC_NODES_MAX) {
        return spc_api_refuse(SPC_EINVAL, "spcomm_startup(total_nodes=%d): a run has at most %d nodes%s",
                              numbers->total_nodes, SPC_NODES_MAX, numbers->source);
    }
    return SPC_OK;
}

/* With boxes on other machines. */
static int join_meeting(const numbers_t *numbers, spcomm_t **comm) {
    const spc_meet_options_t options = {
        .local_nodes = numbers->local_nodes != 0 ? numbers->local_nodes : 1,
        .total_nodes = numbers->total_nodes,
        .group_id = numbers->group_id,
        .infile = numbers->infile,
#ifdef __GLIBC__
        .program = program_invocation_short_name,
#endif
    };
    char message[SPC_MEET_MESSAGE_BYTES];
    spc_meet_t meet;
    spc_fork_t *fork = NULL;
    int status = check_meeting(numbers);
    status = status == SPC_OK ? check_threads((uint32_t)numbers->local_nodes) : status;
    if (status != SPC_OK) {
        return status;
    }
    status = spc_meet(&options, &meet, message, sizeof message);
    if (status != SPC_OK) {
        return spc_api_refuse(status, "spcomm_startup(local_nodes=%d, total_nodes=%d): %s",
                              options.local_nodes, options.total_nodes, message);
    }
    (void)unsetenv(CODE_VARIABLE); /* what the program starts is not to know it */
    membership_t member = {
        .descriptor = meet.descriptor, .size = meet.total_nodes, .group = numbers->group_id, .report = -1};
    status = fork_nodes(meet.local_nodes, meet.descriptor, &meet, &fork, &member.rank);
    if (status == SPC_OK) {
        member.report = spc_fork_report_descriptor(fork);
        status = join(&member, fork, comm);
    }
    int error = errno;
    spc_meet_close(&meet);
    errno = error;
    return status;
}

/* The processes of another launcher. */
static int join_launched(const spc_launcher_place_t *place, const numbers_t *numbers, spcomm_t **comm) {
    char message[SPC_JOIN_MESSAGE_BYTES];
    const spc_meet_options_t meet = {
        .local_nodes = (int32_t)place->local_size,
        .total_nodes = (int32_t)place->size,
        .group_id = numbers->group_id,
        .infile = "",
#ifdef __GLIBC__
        .program = program_invocation_short_name,
#endif
    };
    const bool is_one_machine = place->local_size == place->size;
    spc_fork_join_options_t options = {
        .place = place, .descriptor = -1, .meet = is_one_machine ? NULL : &meet};
    spc_fork_t *fork = NULL;
    membership_t member = {
        .descriptor = -1, .rank = place->rank, .size = place->size, .group = numbers->group_id};
    int status =
        place->local_rank == 0 && is_one_machine ? make_segment(place->size, &options.descriptor) : SPC_OK;
    if (status != SPC_OK) {
        return status;
    }
    status = spc_fork_join(&options, &fork, &member.descriptor, message, sizeof(message));
    if (status == SPC_OK) {
        member.report = spc_fork_report_descriptor(fork);
        status = join(&member, fork, comm);
    } else {
        status = spc_api_refuse(status, "spcomm_startup(): %s", message);
    }
    int error = errno;
    if (options.descriptor >= 0) {
        close(options.descriptor);
    }
    if (member.descriptor >= 0) {
        close(member.descriptor);
    }
    errno = error;
    return status;
}

/* A caller that passes numbers means them. */
static int join_launched_or_alone(const numbers_t *numbers, spcomm_t **comm) {
    char note[SPC_LAUNCHER_NOTE_BYTES];
    spc_launcher_place_t place;
    if (has_numbers(numbers)) {
        return join_alone(numbers, comm);
    }
    int status = spc_launcher_find(&place, find_program(), note, sizeof(note));
    if (status == SPC_OK) {
        return join_launched(&place, numbers, comm);
    }
    if (status != SPC_EAGAIN) {
        return spc_api_refuse(status, "spcomm_startup(): %s", note);
    }
    if (*note != '\0') {
        fprintf(stderr, "spcomm: %s\n", note);
    }
    return join_alone(numbers, comm);
}

static int join_any(const numbers_t *numbers, spcomm_t **comm) {
    membership_t member;
    if (!find_membership(&member)) {
        int status = check_executed();
        if (status != SPC_OK) {
            return status;
        }
        return is_one_of_several(numbers) ? join_meeting(numbers, comm)
                                          : join_launched_or_alone(numbers, comm);
    }
    member.group = member.group != 0 ? member.group : numbers->group_id;
    uint32_t here = 0;
    int status = count_here(member.descriptor, member.size, &here);
    status = status == SPC_OK ? check_against(numbers, here, member.size, member.group) : status;
    if (status != SPC_OK) {
        return status;
    }
    status = join(&member, NULL, comm);
    if (status == SPC_OK) {
        mark_joined(member.rank, member.size);
    }
    return status;
}

static int join_once(const numbers_t *numbers, spcomm_t **comm) {
    spcomm_t *root = spcomm_current();
    if (root != NULL) {
        int status = spc_api_check(root, "spcomm_startup()");
        status = status == SPC_OK ? check_against(numbers, count_neighbors(root), root->size, root->group)
                                  : status;
        *comm = status == SPC_OK ? root : *comm;
        return status;
    }
    int status = join_any(numbers, &root);
    if (status == SPC_OK) {
        keep(root);
        watch_exit(root);
        *comm = root;
    }
    return status;
}

int spcomm_startup(int32_t local_nodes, int32_t total_nodes, int32_t group_id, const char *infile,
                   spcomm_t **comm) {
    numbers_t numbers = {local_nodes, total_nodes, group_id, "", NULL};
    spcomm_t *root = spcomm_current();
    if (comm == NULL) {
        return spc_api_refuse(SPC_EINVAL, "spcomm_startup(comm=NULL): comm is where the communicator goes");
    }
    int status = root != NULL ? spc_api_check(root, "spcomm_startup()") : SPC_OK;
    status = status == SPC_OK ? check_signs(&numbers) : status;
    if (status == SPC_OK && infile != NULL && infile[0] != '\0') {
        status = read_infile(infile, &numbers);
    }
    status = status == SPC_OK ? check_total(&numbers) : status;
    if (status == SPC_OK) {
        pthread_mutex_lock(&starting);
        status = join_once(&numbers, comm);
        pthread_mutex_unlock(&starting);
    }
    return status;
}

/* ---- leaving, dividing */

/* Before a part is destroyed. */
static void drop_handlers(spcomm_t *comm) {
    pthread_mutex_lock(&comm->lock);
    atomic_store_explicit(&comm->handler_count, 0, memory_order_relaxed);
    free(comm->handlers);
    comm->handlers = NULL;
    pthread_mutex_unlock(&comm->lock);
}

int spcomm_shutdown(spcomm_t *comm, int64_t timeout_ns) {
    int status = spc_api_check(comm, "spcomm_shutdown()");
    if (status != SPC_OK) {
        return status;
    }
    status = spc_comm_close(comm->core, spc_clock_deadline_ns(timeout_ns));
    (void)spc_api_fail(comm, status, "spcomm_shutdown()");
    if (status != SPC_OK && status != SPC_ETIMEDOUT) {
        return status;
    }
    spc_api_drop_left(comm);
    if (comm != comm->root) {
        drop_handlers(comm);
        spc_comm_destroy(comm->core);
        comm->core = NULL;
    }
    return status;
}

int spcomm_split(spcomm_t *comm, int64_t color, int64_t key, int64_t timeout_ns, spcomm_t **part) {
    spc_comm_t *core = NULL;
    spcomm_t *made = NULL;
    SPC_API_RECORD(comm, "spcomm_split()");
    int status = spc_api_check(comm, "spcomm_split()");
    if (status != SPC_OK) {
        return status;
    }
    if (part == NULL) {
        return spc_api_refuse(SPC_EINVAL, "spcomm_split(part=NULL): part is where the new communicator goes");
    }
    status = spc_comm_split(comm->core, color, key, spc_clock_deadline_ns(timeout_ns), &core);
    if (status == SPC_OK && core != NULL) {
        status = make_comm(core, comm->root, &made);
    }
    if (status == SPC_ELIMIT) {
        return spc_api_refuse(
            status, "spcomm_split(): 16383 communicators are open, the most there may be at once; one with "
                    "nodes of several boxes counts even when it is closed");
    }
    if (status != SPC_OK) {
        return spc_api_fail(comm, status, "spcomm_split(color=%lld, key=%lld)", (long long)color,
                            (long long)key);
    }
    if (made != NULL) {
        keep(made);
    }
    *part = made;
    return SPC_OK;
}

/* ---- small questions */

int32_t spcomm_rank(const spcomm_t *comm) {
    return comm != NULL ? (int32_t)comm->rank : SPC_EINVAL;
}

int32_t spcomm_size(const spcomm_t *comm) {
    return comm != NULL ? (int32_t)comm->size : SPC_EINVAL;
}

int32_t spcomm_group(const spcomm_t *comm) {
    return comm != NULL ? comm->group : SPC_EINVAL;
}

int spcomm_layout(const spcomm_t *comm, int32_t rank, spcomm_layout_t *layout) {
    static const char call[] = "spcomm_layout()";
    if (comm == NULL || layout == NULL) {
        return spc_api_refuse(SPC_EINVAL, "%s: %s is NULL", call, comm == NULL ? "comm" : "layout");
    }
    if (comm->core == NULL) {
        return spc_api_refuse(SPC_ECLOSED, "%s: this part has been shut down", call);
    }
    if (rank < 0 || (uint32_t)rank >= comm->size) {
        return spc_api_refuse_rank(comm, call, rank, "", "");
    }
    const spc_comm_t *run = comm->root->core;
    const uint32_t place = spc_comm_rank_in_run(comm->core, (uint32_t)rank);
    *layout = (spcomm_layout_t){.box = (int32_t)spc_comm_box(run, place),
                                .local_zero = (int32_t)place,
                                .rank_in_run = (int32_t)place};
    for (uint32_t other = place; other-- > 0;) {
        if (spc_comm_box(run, other) == (uint32_t)layout->box) {
            layout->local_rank++;
            layout->local_zero = (int32_t)other;
        }
    }
    return SPC_OK;
}

int32_t spcomm_box(const spcomm_t *comm) {
    spcomm_layout_t layout = {0};
    const int status = spcomm_layout(comm, comm != NULL ? (int32_t)comm->rank : 0, &layout);
    return status == SPC_OK ? layout.box : status;
}

int64_t spcomm_time_ns(const spcomm_t *comm) {
    return comm != NULL ? (int64_t)(spc_clock_now_ns() - comm->start_ns) : SPC_EINVAL;
}
