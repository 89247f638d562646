/* SPDX-License-Identifier: MIT */
/* Several threads of one node: they wait together, hand over, and each is woken by whatever ends its wait. */
#include "comm_box.h"

/* ---- several threads of one node */

typedef struct team { /* threads that share a node */
    spc_comm_t *comm, *other;
    int tag;
    _Atomic int done;
} team_t;

static void ping_pong_in_thread(int number, int size, void *argument) {
    const team_t *team = argument;
    (void)size;
    for (int i = 0; i < check_scale(800); i++) {
        uint64_t seed = (uint64_t)(number * 1000 + i);
        send_content(team->comm, 1, number, seed, mixed_bytes(i) % 500);
        recv_content(team->comm, 1, number, seed, mixed_bytes(i) % 500);
        if (number == 0 && i % 4 == 0) {
            barrier(team->comm);
        }
    }
}

static void echo(spc_comm_t *comm, int threads) {
    for (long i = 0; i < threads * check_scale(800); i++) {
        spc_message_t message;
        const int32_t to = 0;
        CHECK_OK(recv_until(comm, 0, SPC_ANY_TAG, SPC_NO_DEADLINE, &message));
        const spc_payload_t payload = {message.bytes,
                                       spc_message_data(&message),
                                       spc_message_data_bytes(&message),
                                       message.meta_bytes,
                                       message.format,
                                       NULL};
        CHECK_OK(spc_comm_send(comm, &to, 1, SPC_CONTEXT_USER, message.tag, &payload, SPC_NO_DEADLINE));
        spc_message_release(comm, &message);
    }
}

static void barriers(int number, int size, void *argument) {
    (void)size;
    if (number == 0) {
        echo(argument, 4);
    } else {
        for (int i = 0; i < check_scale(800); i += 4) {
            barrier(argument);
        }
    }
}

/* Four threads wait for their own messages and one of them in barriers: one leads, and hands over when it leaves. */
static void hand_over_body(int rank, int size, void *box) {
    (void)size;
    team_t team = {.comm = comm_box_join(box, rank)};
    if (rank == 0) {
        check_threads(4, ping_pong_in_thread, &team);
    } else {
        check_threads(2, barriers, team.comm);
    }
    comm_box_leave(team.comm);
}

TEST(threads_hand_over_the_lead) {
    run_ranks(2, (spc_config_t){0}, hand_over_body);
    run_ranks(2, (spc_config_t){.slots = 1, .ring_bytes = 1024, .sleep_at_once = 1}, hand_over_body);
}

/* ---- who sleeps is woken: by each single thing that can end its wait. Where slices are endless, a lost one hangs. */

typedef struct sleeper {
    party_t party;
    spc_message_t message; /* that it got */
} sleeper_t;

static void wait_until_asleep(sleeper_t *sleeper) {
    spc_event_shared_t *event = spc_segment_part(&sleeper->party.box.segment, SPC_REGION_EVENT, 0);
    while (atomic_load(&event->sleeping) == 0) {
        spc_platform_yield();
    }
}

static void *sleep_receiving(void *argument) {
    sleeper_t *sleeper = argument;
    CHECK_OK(recv_until(sleeper->party.comm[0], 1, 1, SPC_NO_DEADLINE, &sleeper->message));
    return NULL;
}

static void *sleep_sending(void *argument) {
    sleeper_t *sleeper = argument;
    send_content(sleeper->party.comm[0], 1, 1, 1, 200);
    return NULL;
}

static void *sleep_closing(void *argument) {
    sleeper_t *sleeper = argument;
    CHECK_OK(spc_comm_close(sleeper->party.comm[0], SPC_NO_DEADLINE));
    return NULL;
}

static const spc_config_t sleepy = {
    .slots = 64, .ring_bytes = 1024, .arena_bytes = 1, .queue_limit_bytes = 1024, .sleep_at_once = 1};

TEST(put_back_wakes) {
    sleeper_t sleeper = {.party = party_open(2, sleepy)};
    pthread_t thread;
    spc_message_t message;
    send_content(sleeper.party.comm[1], 0, 1, 1, 100);
    CHECK_OK(recv_until(sleeper.party.comm[0], 1, 1, AT_ONCE, &message));
    CHECK_EQ(pthread_create(&thread, NULL, sleep_receiving, &sleeper), 0);
    wait_until_asleep(&sleeper);
    CHECK_OK(spc_comm_put_back(sleeper.party.comm[0], &message));
    CHECK_EQ(pthread_join(thread, NULL), 0);
    message_check(&sleeper.message, 1, 1, 1, 100);
    spc_message_release(sleeper.party.comm[0], &sleeper.message);
    party_close(&sleeper.party);
}

/* It sleeps at its limit, for what it has sent was taken in by its receiver, and not received. */
TEST(a_take_wakes_the_sender) {
    sleeper_t sleeper = {.party = party_open(2, sleepy)};
    pthread_t thread;
    spc_message_t message;
    uint64_t waiting;
    const int32_t to = 1;
    while (send_until(sleeper.party.comm[0], &to, 1, 2, 1, 8, AT_ONCE) == SPC_OK) {
        CHECK_OK(spc_comm_poll(sleeper.party.comm[1], SPC_CONTEXT_USER, &waiting));
    }
    CHECK_EQ(pthread_create(&thread, NULL, sleep_sending, &sleeper), 0);
    wait_until_asleep(&sleeper);
    while (spc_comm_take(sleeper.party.comm[1], SPC_CONTEXT_USER, 0, 2, &message) == SPC_OK) {
        spc_message_release(sleeper.party.comm[1], &message);
    }
    CHECK_EQ(pthread_join(thread, NULL), 0);
    recv_content(sleeper.party.comm[1], 0, 1, 1, 200);
    party_close(&sleeper.party);
}

TEST(a_release_wakes_the_sender) {
    sleeper_t sleeper = {.party = party_open(2, sleepy)};
    pthread_t thread;
    spc_message_t message[2];
    const int32_t to = 1;
    while (send_until(sleeper.party.comm[0], &to, 1, 0, 0, 200, AT_ONCE) == SPC_OK) {
    }
    CHECK_EQ(pthread_create(&thread, NULL, sleep_sending, &sleeper), 0);
    for (int i = 0; i < 2; i++) { /* too few for the row to be told */
        CHECK_OK(recv_until(sleeper.party.comm[1], 0, 0, AT_ONCE, &message[i]));
        CHECK_EQ(message[i].storage, SPC_STORED_RING);
    }
    wait_until_asleep(&sleeper);
    spc_message_release(sleeper.party.comm[1], &message[0]);
    spc_message_release(sleeper.party.comm[1], &message[1]);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    party_close(&sleeper.party);
}

TEST(a_stored_part_wakes_the_sender) {
    sleeper_t sleeper = {.party = party_open(2, sleepy)};
    pthread_t thread;
    uint64_t waiting = 0;
    send_content(sleeper.party.comm[0], 1, 1, 1, 5000);
    CHECK_EQ(pthread_create(&thread, NULL, sleep_closing, &sleeper), 0);
    while (waiting == 0) {
        CHECK_OK(spc_comm_poll(sleeper.party.comm[1], SPC_CONTEXT_USER, &waiting));
        spc_platform_yield();
    }
    CHECK_EQ(pthread_join(thread, NULL), 0);
    recv_content(sleeper.party.comm[1], 0, 1, 1, 5000);
    party_close(&sleeper.party);
}

/* One thread takes and puts back; the other one waits for the same messages and gets each once. */
static void put_back_in_thread(int number, int size, void *argument) {
    team_t *team = argument;
    (void)size;
    if (number == 0) {
        for (int i = 0; i < check_scale(3000); i++) {
            send_content(team->other, 0, 1, (uint64_t)i, 20 + (uint64_t)i % 100);
            recv_content(team->comm, 1, 1, (uint64_t)i, 20 + (uint64_t)i % 100);
        }
        atomic_store(&team->done, 1);
    } else {
        spc_message_t message;
        while (!atomic_load(&team->done)) {
            if (spc_comm_try_recv(team->comm, SPC_CONTEXT_USER, 1, 1, &message) == SPC_OK) {
                CHECK_OK(spc_comm_put_back(team->comm, &message));
            }
        }
    }
}

TEST(putting_back_while_others_wait) {
    party_t party = party_open(2, (spc_config_t){.sleep_at_once = 1});
    team_t team = {.comm = party.comm[0], .other = party.comm[1]};
    check_threads(3, put_back_in_thread, &team);
    party_close(&party);
}

static void close_in_thread(int number, int size, void *argument) {
    team_t *team = argument;
    spc_message_t message;
    if (number == 0) {
        while (atomic_load(&team->done) != size - 1) { /* they are about to wait, or wait */
            spc_platform_yield();
        }
        CHECK_OK(spc_comm_close(team->comm, SPC_NO_DEADLINE));
    } else {
        atomic_fetch_add(&team->done, 1);
        CHECK_EQ(recv_until(team->comm, number % 2 ? 1 : SPC_ANY_SOURCE, 0, SPC_NO_DEADLINE, &message),
                 SPC_ECLOSED);
    }
}

TEST(closing_ends_the_waits_of_other_threads) {
    for (int i = 0; i < 20; i++) {
        party_t party = party_open(2, (spc_config_t){.sleep_at_once = 1});
        team_t team = {.comm = party.comm[0]};
        check_threads(4, close_in_thread, &team);
        party_close(&party);
    }
}

static void busy_in_thread(int number, int size, void *argument) {
    team_t *team = argument;
    const spc_signature_t signature = {.operation = SPC_OPERATION_BARRIER};
    int status;
    (void)size;
    if (number == 0) {
        do {
            status = spc_comm_collective(team->comm, &signature, NULL, NULL, 0, NULL, SPC_NO_DEADLINE);
        } while (status == SPC_EBUSY);
        CHECK_OK(status);
    } else {
        do {
            status = spc_comm_collective(team->comm, &signature, NULL, NULL, 0, NULL, AT_ONCE);
            CHECK(status == SPC_EBUSY || status == SPC_ETIMEDOUT);
        } while (status != SPC_EBUSY);
        CHECK_OK(spc_comm_collective(team->other, &signature, NULL, NULL, 0, NULL, SPC_NO_DEADLINE));
    }
}

TEST(two_collectives_at_once_are_refused) {
    party_t party = party_open(2, (spc_config_t){0});
    team_t team = {.comm = party.comm[0], .other = party.comm[1]};
    check_threads(2, busy_in_thread, &team);
    party_close(&party);
}

/* ---- interrupting */

static int refuse(void *argument) {
    ++*(int *)argument;
    return -1;
}

TEST(a_check_ends_a_wait) {
    comm_box_t box = comm_box_open((spc_config_t){.nodes = 2, .slots = 1});
    int calls = 0;
    spc_comm_t *comm;
    spc_message_t message;
    const spc_comm_options_t options = {
        .descriptor = box.descriptor, .check = refuse, .check_argument = &calls};
    CHECK_OK(spc_comm_create(&options, &comm));
    CHECK_EQ(recv_until(comm, 1, 0, SPC_NO_DEADLINE, &message), SPC_EINTERRUPTED);
    CHECK_EQ(calls, 1);
    send_content(comm, 1, 0, 1, 8);
    send_content(comm, 1, 0, 1, 8);
    CHECK_EQ(spc_comm_close(comm, SPC_NO_DEADLINE), SPC_EINTERRUPTED);
    CHECK_OK(spc_comm_usable(comm)); /* it may be tried again */
    CHECK_EQ(spc_comm_close(comm, AT_ONCE), SPC_ETIMEDOUT);
    spc_comm_destroy(comm);
    comm_box_close(&box);
}

/* A signal handler that receives, called by the waiting thread: it is the one that drains for all. */
static int receive_within(void *argument) {
    team_t *team = argument;
    if (team->tag++ == 0) {
        send_content(team->comm, 0, 1, 1, 8);
        recv_content(team->comm, 0, 7, 7, 100);
    }
    return SPC_OK;
}

static void nested_body(int rank, int size, void *argument) {
    const comm_box_t *box = argument;
    team_t team = {.tag = 0};
    const spc_comm_options_t options = {.descriptor = box->descriptor,
                                        .rank = (uint32_t)rank,
                                        .check = rank == 1 ? receive_within : NULL,
                                        .check_argument = &team};
    (void)size;
    CHECK_OK(spc_comm_create(&options, &team.comm));
    if (rank == 1) {
        recv_content(team.comm, 0, 8, 8, 100);
    } else {
        recv_content(team.comm, 1, 1, 1, 8);
        send_content(team.comm, 1, 7, 7, 100);
        send_content(team.comm, 1, 8, 8, 100);
    }
    comm_box_leave(team.comm);
}

TEST(a_check_may_wait_itself) {
    run_ranks(2, (spc_config_t){.sleep_at_once = 1}, nested_body);
}

TEST_MAIN()
