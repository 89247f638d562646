/* SPDX-License-Identifier: MIT */
/* Meeting: what a box process may send, and how it may end. This program is also the box process. */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/spc_error.h"
#include "fork/spc_meet.h"

enum { LOCAL = 3, TOTAL = 5, GROUP = 7, RANDOM_ROUNDS = 200 };

static const uint32_t ranks[LOCAL] = {0, 1, 3};
static const char *self;

/* ---- the box process */

static void put(int socket, const void *bytes, size_t length_bytes) {
    if (write(socket, bytes, length_bytes) != (ssize_t)length_bytes) {
        _exit(1);
    }
}

/* Sends the first bytes along with the read end of a pipe, in which there is one letter. */
static void put_with_descriptor(int socket, const void *bytes, size_t length_bytes) {
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {
        .header = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    struct iovec piece = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = length_bytes};
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof control.room};
    int ends[2];
    if (pipe(ends) != 0 || write(ends[1], "s", 1) != 1) {
        _exit(1);
    }
    memcpy(CMSG_DATA(&control.header), &ends[0], sizeof ends[0]);
    if (sendmsg(socket, &message, 0) != (ssize_t)length_bytes) {
        _exit(1);
    }
}

static void put_noise(int socket, uint64_t seed) {
    unsigned char noise[64];
    const size_t length_bytes = check_below(&seed, sizeof noise);
    for (size_t i = 0; i < sizeof noise; i++) {
        noise[i] = check_below(&seed, 3) != 0 ? 0 : (unsigned char)check_random(&seed);
    }
    if (length_bytes > 0 && check_below(&seed, 2) == 0) {
        put_with_descriptor(socket, noise, length_bytes);
    } else {
        put(socket, noise, length_bytes);
    }
}

static const uint32_t twice[2 * LOCAL] = {0, 1, 3, 0, 1, 3};
static char long_text[SPC_MEET_TEXT_BYTES];

static const struct answer {
    const char *mode;
    int32_t code;
    uint32_t promised_bytes;
    const void *bytes;
    uint32_t length_bytes;
    bool has_segment, in_pieces;
} answers[] = {
    {"grants", 0, sizeof ranks, ranks, sizeof ranks, true, false},
    {"grants in pieces", 0, sizeof ranks, ranks, sizeof ranks, true, true},
    {"grants without a segment", 0, sizeof ranks, ranks, sizeof ranks, false, false},
    {"grants too many ranks", 0, sizeof twice, twice, sizeof twice, true, false},
    {"grants too few ranks", 0, sizeof ranks, ranks, sizeof ranks - 1, true, false},
    {"refuses", SPC_ETIMEDOUT, 9, "too late!", 9, false, false},
    {"refuses at length", SPC_EINVAL, sizeof long_text, long_text, sizeof long_text, false, false},
    {"refuses half", SPC_EINVAL, 9, "too", 3, false, false},
};

static void put_answer(int socket, const struct answer *answer) {
    static unsigned char bytes[sizeof(spc_meet_header_t) + sizeof long_text];
    const spc_meet_header_t header = {answer->code, answer->promised_bytes};
    const size_t length = sizeof header + answer->length_bytes, piece = answer->in_pieces ? 1 : length;
    memset(long_text, 'x', sizeof long_text);
    memcpy(bytes, &header, sizeof header);
    memcpy(bytes + sizeof header, answer->bytes, answer->length_bytes);
    for (size_t at = 0; at < length; at += piece) {
        (at == 0 && answer->has_segment ? put_with_descriptor : put)(socket, bytes + at, piece);
    }
}

static void be_box(const char *mode, int socket) {
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        if (strcmp(mode, answers[i].mode) == 0) {
            put_answer(socket, &answers[i]);
        }
    }
    if (strcmp(mode, "signals") == 0) {
        struct pollfd end = {.fd = socket, .events = POLLIN};
        while (poll(&end, 1, 1) == 0) { /* again: a signal that comes before the wait begins is lost */
            (void)kill(getppid(), SIGUSR1);
        }
    } else if (strncmp(mode, "noise ", 6) == 0) {
        put_noise(socket, strtoull(mode + 6, NULL, 10));
    }
}

/* The words as written by spc_meet. */
static int box_main(char **words) {
    const bool is_right = strcmp(words[3], "3") == 0 && strcmp(words[4], "5") == 0
                          && strcmp(words[5], "7") == 0 && strcmp(words[6], "run.toml") == 0
                          && strcmp(words[7], "a program") == 0;
    const int socket = atoi(words[2]);
    if (!is_right || socket < 3 || fcntl(socket, F_GETFD) != 0) {
        return 1;
    }
    be_box(words[1], socket);
    return 0;
}

/* ---- the program */

static int descriptors_open(void) {
    int count = 0;
    for (int fd = 0; fd < 256; fd++) {
        count += fcntl(fd, F_GETFD) >= 0;
    }
    return count;
}

static int signals_heard;

static int hear(void *argument) {
    signals_heard++;
    return *(const int *)argument;
}

static int meet_with(const char *program, const char *mode, int (*check)(void *), int *status_of_check,
                     spc_meet_t *meet, char *message) {
    const char *const command[] = {program, mode, NULL};
    const spc_meet_options_t options = {.command = command,
                                        .local_nodes = LOCAL,
                                        .total_nodes = TOTAL,
                                        .group_id = GROUP,
                                        .infile = "run.toml",
                                        .check = check,
                                        .check_argument = status_of_check};
    memset(message, 'm', SPC_MEET_MESSAGE_BYTES);
    return spc_meet(&options, meet, message, SPC_MEET_MESSAGE_BYTES);
}

static void check_granted(const char *mode) {
    char message[SPC_MEET_MESSAGE_BYTES], letter = 0;
    spc_meet_t meet;
    const int open = descriptors_open();
    CHECK_OK(meet_with(self, mode, NULL, NULL, &meet, message));
    CHECK_EQ(memcmp(meet.ranks, ranks, sizeof ranks), 0);
    CHECK_EQ(meet.local_nodes, LOCAL);
    CHECK_EQ(meet.total_nodes, TOTAL);
    CHECK_EQ(fcntl(meet.descriptor, F_GETFD), FD_CLOEXEC);
    CHECK_EQ(fcntl(meet.socket, F_GETFD), FD_CLOEXEC);
    CHECK_EQ(read(meet.descriptor, &letter, 1), 1);
    CHECK_EQ(letter, 's');
    spc_meet_close(&meet);
    spc_meet_close(&meet); /* no descriptor that somebody else has by now */
    CHECK_EQ(waitpid(meet.process, NULL, 0), meet.process);
    CHECK_EQ(descriptors_open(), open);
}

/* Nothing is left. */
static int check_failed(const char *program, const char *mode, char *message) {
    spc_meet_t meet;
    const int open = descriptors_open();
    const int status = meet_with(program, mode, NULL, NULL, &meet, message);
    CHECK(status != SPC_OK && memchr(message, '\0', SPC_MEET_MESSAGE_BYTES) != NULL);
    CHECK(meet.ranks == NULL && meet.descriptor == -1 && meet.socket == -1);
    CHECK_EQ(waitpid(-1, NULL, 0), -1);
    CHECK_EQ(errno, ECHILD);
    CHECK_EQ(descriptors_open(), open);
    return status;
}

TEST(a_box_meets_the_others) {
    check_granted("grants");
    check_granted("grants in pieces");
}

TEST(without_standard_streams) {
    const int kept = dup(0);
    CHECK(kept >= 0);
    CHECK_EQ(close(0), 0);
    check_granted("grants"); /* the box process looks at the number of its socket */
    CHECK_EQ(dup2(kept, 0), 0);
    CHECK_EQ(close(kept), 0);
}

TEST(a_refusal_has_its_sentence) {
    char message[SPC_MEET_MESSAGE_BYTES];
    CHECK_EQ(check_failed(self, "refuses", message), SPC_ETIMEDOUT);
    CHECK_STR(message, "too late!");
    CHECK_EQ(check_failed(self, "refuses at length", message), SPC_EINVAL);
    CHECK_EQ_U(strlen(message), SPC_MEET_MESSAGE_BYTES - 1);
}

TEST(a_box_process_that_ends_without_a_word) {
    static const char *const modes[] = {"nothing", "grants without a segment", "grants too many ranks",
                                        "grants too few ranks", "refuses half"};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        char message[SPC_MEET_MESSAGE_BYTES];
        CHECK_EQ(check_failed(self, modes[i], message), SPC_ESYSTEM);
        CHECK_STR(message, "the box process has ended without a word");
    }
}

TEST(a_command_that_is_not_there) {
    char message[SPC_MEET_MESSAGE_BYTES];
    CHECK_EQ(check_failed("/nowhere/spcomm", "nothing", message), SPC_ESYSTEM);
    CHECK(strstr(message, "there is no command spcomm in PATH") != NULL);
    CHECK_EQ(check_failed("/", "nothing", message), SPC_ESYSTEM);
    CHECK_STR(message, "the box process cannot be started");
}

static void ignore(int number) {
    (void)number;
}

TEST(a_signal_ends_the_wait) {
    const struct sigaction action = {.sa_handler = ignore}; /* system calls are not restarted */
    char message[SPC_MEET_MESSAGE_BYTES];
    spc_meet_t meet;
    int status = SPC_EINTERRUPTED;
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    CHECK_EQ(meet_with(self, "signals", hear, &status, &meet, message), SPC_EINTERRUPTED);
    CHECK_EQ(signals_heard, 1);
    CHECK_EQ(waitpid(-1, NULL, 0), -1);
}

/* Any bytes, with or without a descriptor: a status, and nothing is left, or what was promised. */
TEST(noise) {
    uint64_t seed = check_seed();
    for (int i = check_scale(RANDOM_ROUNDS); i > 0; i--) {
        char mode[40], message[SPC_MEET_MESSAGE_BYTES];
        spc_meet_t meet;
        const int open = descriptors_open();
        snprintf(mode, sizeof mode, "noise %" PRIu64, check_random(&seed));
        if (meet_with(self, mode, NULL, NULL, &meet, message) == SPC_OK) {
            spc_meet_close(&meet);
            CHECK_EQ(waitpid(meet.process, NULL, 0), meet.process);
        }
        CHECK(memchr(message, '\0', sizeof message) != NULL);
        CHECK_EQ(waitpid(-1, NULL, 0), -1);
        CHECK_EQ(descriptors_open(), open);
    }
}

int main(int count, char **words) {
    if (count == 8) {
        return box_main(words);
    }
    self = words[0];
    check_all();
    return check_done();
}
