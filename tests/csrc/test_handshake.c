/* SPDX-License-Identifier: MIT */
/* Handshakes: both roles against each other, in pieces of every size, and against everybody who should not get in. */
#include "check.h"

#include "base/spc_error.h"
#include "net/wire/spc_handshake.h"

enum { MESSAGE = SPC_HANDSHAKE_MESSAGE_BYTES, MAC = SPC_HANDSHAKE_MAC_BYTES, START = 1000, NOWHERE = -1 };
enum { CLIENT = SPC_HANDSHAKE_CLIENT, SERVER = SPC_HANDSHAKE_SERVER };
enum {
    AT_KIND = 4,
    AT_VERDICT = 5,
    AT_BYTE_ORDER = 6,
    AT_VERSION = 8,
    AT_JOB = 12,
    AT_BOX = 16,
    AT_RANDOM = 32
};
enum { KIND_CHALLENGE = 2, KIND_CLIENT_PROOF = 3, KIND_SERVER_PROOF = 4, KIND_VERDICT = 5 };

/* Stands for HMAC-SHA-256: every bit of the key and of the bytes changes all of it. */
static void make_mac(uint64_t secret, const unsigned char *bytes, unsigned char mac[MAC]) {
    uint64_t state = secret;
    for (int i = 0; i < SPC_HANDSHAKE_SIGNED_BYTES; i++) {
        state = (state ^ bytes[i]) + 1;
        state = check_random(&state);
    }
    for (int i = 0; i < MAC; i++) {
        mac[i] = (unsigned char)check_random(&state);
    }
}

/* One end with its driver, and all that it has sent. */
typedef struct side {
    spc_handshake_t *machine;
    uint64_t secret; /* 0: the driver finds no such job */
    unsigned char sent[4 * MESSAGE];
    size_t sent_bytes, read_bytes;
} side_t;

typedef struct pair {
    side_t side[2]; /* by role */
    uint64_t now_ns;
    int flip_by; /* a role: bit `flip` of what it sends arrives changed; NOWHERE: none */
    size_t flip;
} pair_t;

static spc_handshake_options_t options_of(int role) {
    spc_handshake_options_t options = {.role = (spc_handshake_role_t)role};
    memset(options.nonce, role == CLIENT ? 0xc1 : 0x5e, sizeof options.nonce);
    if (role == CLIENT) {
        options.job = 0x04030201;
        options.box = 0x0605;
    }
    return options;
}

static side_t side_make(const spc_handshake_options_t *options) {
    side_t side = {.secret = 7};
    CHECK_OK(spc_handshake_create(options, START, &side.machine));
    return side;
}

static pair_t pair_make(const spc_handshake_options_t *client, const spc_handshake_options_t *server) {
    pair_t pair = {.now_ns = START, .flip_by = NOWHERE};
    const spc_handshake_options_t usual[2] = {options_of(CLIENT), options_of(SERVER)};
    pair.side[CLIENT] = side_make(client != NULL ? client : &usual[CLIENT]);
    pair.side[SERVER] = side_make(server != NULL ? server : &usual[SERVER]);
    return pair;
}

static void pair_end(pair_t *pair) {
    spc_handshake_destroy(pair->side[CLIENT].machine);
    spc_handshake_destroy(pair->side[SERVER].machine);
}

static spc_handshake_outcome_t outcome(const pair_t *pair, int role) {
    return spc_handshake_outcome(pair->side[role].machine);
}

static void sign(side_t *side) {
    unsigned char mac[MAC];
    const unsigned char *bytes = spc_handshake_to_sign(side->machine);
    CHECK(bytes != NULL);
    make_mac(side->secret, bytes, mac);
    CHECK_OK(spc_handshake_sign(side->machine, side->secret != 0 ? mac : NULL));
}

/* Sends at most `most` bytes. */
static void write_some(side_t *side, size_t most) {
    const unsigned char *bytes;
    size_t length = spc_handshake_output(side->machine, &bytes);
    CHECK(length > 0);
    length = length < most ? length : most;
    CHECK(side->sent_bytes + length <= sizeof side->sent);
    memcpy(side->sent + side->sent_bytes, bytes, length);
    side->sent_bytes += length;
    CHECK_OK(spc_handshake_sent(side->machine, length));
}

/* Reads at most `most` of what the other has sent; says whether there was something. Never more than it may. */
static bool read_some(pair_t *pair, int role, size_t most) {
    side_t *side = &pair->side[role], *other = &pair->side[!role];
    size_t length = other->sent_bytes - side->read_bytes, wants = spc_handshake_wants(side->machine);
    CHECK(wants > 0);
    length = length < most ? length : most;
    length = length < wants ? length : wants;
    unsigned char piece[MESSAGE];
    memcpy(piece, other->sent + side->read_bytes, length);
    size_t at = pair->flip / 8;
    if (pair->flip_by == !role && at >= side->read_bytes && at < side->read_bytes + length) {
        piece[at - side->read_bytes] ^= (unsigned char)(1 << pair->flip % 8);
    }
    side->read_bytes += length;
    CHECK_OK(spc_handshake_feed(side->machine, pair->now_ns, piece, length));
    return length > 0;
}

static bool move(pair_t *pair, int role, size_t most) {
    side_t *side = &pair->side[role];
    switch (spc_handshake_step(side->machine, pair->now_ns)) {
    case SPC_HANDSHAKE_WRITE:
        write_some(side, most);
        return true;
    case SPC_HANDSHAKE_SIGN:
        sign(side);
        return true;
    case SPC_HANDSHAKE_READ:
        return read_some(pair, role, most);
    default:
        return false;
    }
}

/* Until neither can go on; who then is over has closed the connection, and the other sees that. */
static void exchange(pair_t *pair, size_t most) {
    bool moved;
    do {
        moved = move(pair, CLIENT, most);
        moved |= move(pair, SERVER, most);
    } while (moved);
    for (int role = CLIENT; role <= SERVER; role++) {
        if (outcome(pair, !role) != SPC_HANDSHAKE_OPEN) {
            spc_handshake_closed(pair->side[role].machine);
        }
    }
}

static void run_to(const spc_handshake_options_t *client, const spc_handshake_options_t *server,
                   spc_handshake_outcome_t client_outcome, spc_handshake_outcome_t server_outcome) {
    pair_t pair = pair_make(client, server);
    exchange(&pair, MESSAGE);
    CHECK_EQ(outcome(&pair, CLIENT), client_outcome);
    CHECK_EQ(outcome(&pair, SERVER), server_outcome);
    pair_end(&pair);
}

/* ---- those who may */

TEST(the_bytes) {
    pair_t pair = pair_make(NULL, NULL);
    const unsigned char *hello, *to_sign;
    CHECK_EQ_U(spc_handshake_output(pair.side[CLIENT].machine, &hello), MESSAGE);
    unsigned char expected[MESSAGE] = {'s', 'p', 'c', 'h', 1, 0, 1, 0, SPC_FRAME_VERSION,
                                       0,   0,   0,   1,   2, 3, 4, 5, 6};
    const uint16_t one = 1;
    expected[AT_BYTE_ORDER] = *(const unsigned char *)&one == 1 ? 1 : 2;
    memset(expected + AT_RANDOM, 0xc1, 32);
    CHECK_MEM(hello, expected, MESSAGE);

    write_some(&pair.side[CLIENT], MESSAGE);
    CHECK(read_some(&pair, SERVER, MESSAGE));
    write_some(&pair.side[SERVER], MESSAGE);
    CHECK(read_some(&pair, CLIENT, MESSAGE));
    to_sign = spc_handshake_to_sign(pair.side[CLIENT].machine);
    CHECK_MEM(to_sign, "spcomm client\0\0\0", 16);
    CHECK_MEM(to_sign + 16, expected, MESSAGE);
    expected[AT_KIND] = KIND_CHALLENGE;
    memset(expected + AT_RANDOM, 0x5e, 32);
    CHECK_MEM(to_sign + 16 + MESSAGE, expected, MESSAGE);
    CHECK_MEM(pair.side[SERVER].sent, expected, MESSAGE);

    sign(&pair.side[CLIENT]);
    write_some(&pair.side[CLIENT], MESSAGE);
    CHECK(read_some(&pair, SERVER, MESSAGE));
    CHECK_MEM(spc_handshake_to_sign(pair.side[SERVER].machine), "spcomm client\0\0\0", 16);
    sign(&pair.side[SERVER]);
    CHECK_MEM(spc_handshake_to_sign(pair.side[SERVER].machine), "spcomm server\0\0\0", 16);
    pair_end(&pair);
}

TEST(pieces_of_every_size) {
    for (size_t most = 1; most <= MESSAGE + 1; most++) {
        pair_t pair = pair_make(NULL, NULL);
        exchange(&pair, most);
        for (int role = CLIENT; role <= SERVER; role++) {
            spc_handshake_peer_t peer;
            CHECK_EQ(outcome(&pair, role), SPC_HANDSHAKE_ACCEPTED);
            CHECK_EQ_U(pair.side[role].sent_bytes, 2 * MESSAGE);
            CHECK_EQ_U(pair.side[role].read_bytes, 2 * MESSAGE);
            spc_handshake_peer(pair.side[role].machine, &peer);
            CHECK_EQ_U(peer.version, SPC_HANDSHAKE_VERSION);
            CHECK_EQ_U(peer.job, 0x04030201);
            CHECK_EQ(peer.box, 0x0605);
        }
        pair_end(&pair);
    }
}

/* A server looks the secret up when it is to sign: then it knows the job and the box. */
TEST(every_box_and_job) {
    static const uint16_t BOXES[] = {0, 1, 63, 255, 256, UINT16_MAX};
    static const uint32_t JOBS[] = {0, 1, 1 << 16, UINT32_MAX};
    for (size_t i = 0; i < sizeof BOXES / sizeof *BOXES * 4; i++) {
        spc_handshake_options_t client = options_of(CLIENT);
        spc_handshake_peer_t peer;
        client.box = BOXES[i / 4];
        client.job = JOBS[i % 4];
        pair_t pair = pair_make(&client, NULL);
        spc_handshake_peer(pair.side[SERVER].machine, &peer);
        CHECK_EQ_U(peer.version, 0);
        do {
            move(&pair, CLIENT, MESSAGE);
            move(&pair, SERVER, MESSAGE);
        } while (spc_handshake_to_sign(pair.side[SERVER].machine) == NULL);
        spc_handshake_peer(pair.side[SERVER].machine, &peer);
        CHECK_EQ(peer.box, client.box);
        CHECK_EQ_U(peer.job, client.job);
        exchange(&pair, MESSAGE);
        CHECK_EQ(outcome(&pair, CLIENT), SPC_HANDSHAKE_ACCEPTED);
        CHECK_EQ(outcome(&pair, SERVER), SPC_HANDSHAKE_ACCEPTED);
        pair_end(&pair);
    }
}

/* ---- those who may not */

/* Wrong secrets and jobs that do not exist get the same bytes, and nothing made with the secret. */
TEST(wrong_secret) {
    static const uint64_t SECRETS[][2] = {{8, 7}, {7, 8}, {7, 0}};
    unsigned char answers[3][2 * MESSAGE];
    for (int i = 0; i < 3; i++) {
        pair_t pair = pair_make(NULL, NULL);
        pair.side[CLIENT].secret = SECRETS[i][CLIENT];
        pair.side[SERVER].secret = SECRETS[i][SERVER];
        exchange(&pair, MESSAGE);
        CHECK_EQ(outcome(&pair, CLIENT), SPC_HANDSHAKE_REFUSED);
        CHECK_EQ(outcome(&pair, SERVER), SPC_HANDSHAKE_REFUSED);
        CHECK_EQ_U(pair.side[SERVER].sent_bytes, 2 * MESSAGE);
        CHECK_EQ(pair.side[SERVER].sent[MESSAGE + AT_KIND], KIND_VERDICT);
        memcpy(answers[i], pair.side[SERVER].sent, 2 * MESSAGE);
        CHECK_MEM(answers[i], answers[0], 2 * MESSAGE);
        pair_end(&pair);
    }
}

/* The client has found no secret of its own. */
TEST(no_secret) {
    pair_t pair = pair_make(NULL, NULL);
    pair.side[CLIENT].secret = 0;
    exchange(&pair, MESSAGE);
    CHECK_EQ(outcome(&pair, CLIENT), SPC_HANDSHAKE_REFUSED);
    CHECK_EQ(outcome(&pair, SERVER), SPC_HANDSHAKE_REFUSED);
    pair_end(&pair);
}

/* A server that lets everybody in, and has not the secret: the client stays out. */
TEST(a_false_server) {
    pair_t pair = pair_make(NULL, NULL);
    do {
        move(&pair, CLIENT, MESSAGE);
        move(&pair, SERVER, MESSAGE);
    } while (pair.side[SERVER].sent_bytes < MESSAGE || pair.side[CLIENT].sent_bytes < 2 * MESSAGE);
    side_t *server = &pair.side[SERVER];
    memcpy(server->sent + MESSAGE, server->sent, MESSAGE);
    server->sent[MESSAGE + AT_KIND] = KIND_SERVER_PROOF;
    /* First any bytes; then what the client itself has signed. */
    for (int mirrored = 0; mirrored <= 1; mirrored++) {
        if (mirrored) {
            memcpy(server->sent + MESSAGE + AT_RANDOM, pair.side[CLIENT].sent + MESSAGE + AT_RANDOM, MAC);
        }
        server->sent_bytes = 2 * MESSAGE;
        pair_t again = pair_make(NULL, NULL);
        again.side[SERVER].sent_bytes = 2 * MESSAGE;
        memcpy(again.side[SERVER].sent, server->sent, 2 * MESSAGE);
        while (move(&again, CLIENT, MESSAGE)) {
        }
        CHECK_EQ(outcome(&again, CLIENT), SPC_HANDSHAKE_REFUSED);
        CHECK_EQ_U(again.side[CLIENT].sent_bytes, 2 * MESSAGE); /* and says nothing of it */
        pair_end(&again);
    }
    pair_end(&pair);
}

/* Every bit of every message: whoever reads it, or what depends on it, does not accept. */
TEST(one_bit_on_the_way) {
    for (int by = CLIENT; by <= SERVER; by++) {
        for (size_t bit = 0; bit < 2 * MESSAGE * 8; bit++) {
            pair_t pair = pair_make(NULL, NULL);
            pair.flip_by = by;
            pair.flip = bit;
            exchange(&pair, MESSAGE);
            bool last = by == SERVER && bit >= MESSAGE * 8; /* then the server has accepted already */
            CHECK(outcome(&pair, CLIENT) != SPC_HANDSHAKE_OPEN);
            CHECK(outcome(&pair, CLIENT) != SPC_HANDSHAKE_ACCEPTED);
            CHECK(outcome(&pair, SERVER) != SPC_HANDSHAKE_OPEN);
            CHECK_EQ(outcome(&pair, SERVER) == SPC_HANDSHAKE_ACCEPTED, last);
            pair_end(&pair);
        }
    }
}

/* Feeds one end with what a stranger has: whole messages, as long as it reads. */
static spc_handshake_outcome_t answer_by(const spc_handshake_options_t *options, const unsigned char *bytes,
                                         size_t length_bytes) {
    pair_t pair = pair_make(NULL, NULL);
    int role = options->role;
    spc_handshake_destroy(pair.side[role].machine);
    pair.side[role] = side_make(options);
    memcpy(pair.side[!role].sent, bytes, length_bytes);
    pair.side[!role].sent_bytes = length_bytes;
    while (move(&pair, role, MESSAGE)) {
    }
    spc_handshake_closed(pair.side[role].machine);
    spc_handshake_outcome_t found = outcome(&pair, role);
    pair_end(&pair);
    return found;
}

/* The bytes that one end sent in an accepted handshake, sent again to an end with another nonce. */
TEST(replay) {
    pair_t pair = pair_make(NULL, NULL);
    exchange(&pair, MESSAGE);
    for (int role = CLIENT; role <= SERVER; role++) {
        spc_handshake_options_t options = options_of(role);
        const unsigned char *said = pair.side[!role].sent;
        CHECK_EQ(answer_by(&options, said, 2 * MESSAGE),
                 SPC_HANDSHAKE_ACCEPTED); /* the same nonce: never do that */
        for (size_t byte = 0; byte < sizeof options.nonce; byte++) {
            options = options_of(role);
            options.nonce[byte] ^= 1;
            CHECK_EQ(answer_by(&options, said, 2 * MESSAGE), SPC_HANDSHAKE_REFUSED);
        }
    }
    pair_end(&pair);
}

/* An end hears its own words, as they are or with the kinds that it waits for. */
TEST(reflection) {
    pair_t pair = pair_make(NULL, NULL);
    exchange(&pair, MESSAGE);
    static const unsigned char KINDS[2][2] = {{KIND_CHALLENGE, KIND_SERVER_PROOF}, {1, KIND_CLIENT_PROOF}};
    for (int role = CLIENT; role <= SERVER; role++) {
        const spc_handshake_options_t options = options_of(role);
        unsigned char *said = pair.side[role].sent;
        CHECK_EQ(answer_by(&options, said, 2 * MESSAGE), SPC_HANDSHAKE_STRANGER);
        said[AT_KIND] = KINDS[role][0];
        said[MESSAGE + AT_KIND] = KINDS[role][1];
        CHECK_EQ(answer_by(&options, said, 2 * MESSAGE), SPC_HANDSHAKE_REFUSED);
        said[AT_RANDOM] ^= 1; /* not its own nonce any more */
        CHECK_EQ(answer_by(&options, said, 2 * MESSAGE), SPC_HANDSHAKE_REFUSED);
    }
    pair_end(&pair);
}

/* Not even signed. */
TEST(our_own_nonce) {
    for (int role = CLIENT; role <= SERVER; role++) {
        spc_handshake_options_t options[2] = {options_of(CLIENT), options_of(SERVER)};
        memcpy(options[SERVER].nonce, options[CLIENT].nonce, sizeof options[CLIENT].nonce);
        pair_t pair = pair_make(&options[CLIENT], &options[SERVER]);
        if (role == CLIENT) { /* the server does not look: its nonce was changed on the way */
            options[SERVER].nonce[31] ^= 1;
            spc_handshake_destroy(pair.side[SERVER].machine);
            pair.side[SERVER] = side_make(&options[SERVER]);
            pair.flip_by = SERVER;
            pair.flip = 8 * (MESSAGE - 1);
        }
        exchange(&pair, MESSAGE);
        CHECK_EQ(outcome(&pair, CLIENT), SPC_HANDSHAKE_REFUSED);
        CHECK_EQ(outcome(&pair, SERVER), SPC_HANDSHAKE_REFUSED);
        const side_t *side = &pair.side[role];
        CHECK_EQ(side->sent[side->sent_bytes - MESSAGE + AT_KIND], KIND_VERDICT);
        pair_end(&pair);
    }
}

/* A server that answers somebody else. */
TEST(a_challenge_for_another) {
    pair_t pair = pair_make(NULL, NULL);
    const spc_handshake_options_t options = options_of(CLIENT);
    exchange(&pair, MESSAGE);
    for (int at = AT_JOB; at < AT_BOX + 2; at++) {
        unsigned char said[MESSAGE];
        memcpy(said, pair.side[SERVER].sent, MESSAGE);
        said[at] ^= 1;
        CHECK_EQ(answer_by(&options, said, MESSAGE), SPC_HANDSHAKE_STRANGER);
    }
    pair_end(&pair);
}

/* A server's proof is none of a client, though it is made with the secret and of the same messages. */
TEST(the_other_roles_proof) {
    pair_t pair = pair_make(NULL, NULL);
    exchange(&pair, MESSAGE);
    for (int role = CLIENT; role <= SERVER; role++) {
        const spc_handshake_options_t options = options_of(role);
        unsigned char said[2 * MESSAGE];
        memcpy(said, pair.side[!role].sent, 2 * MESSAGE);
        memcpy(said + MESSAGE + AT_RANDOM, pair.side[role].sent + MESSAGE + AT_RANDOM, MAC);
        CHECK_EQ(answer_by(&options, said, 2 * MESSAGE), SPC_HANDSHAKE_REFUSED);
    }
    pair_end(&pair);
}

TEST(two_of_one_role) {
    for (int role = CLIENT; role <= SERVER; role++) {
        pair_t pair = pair_make(NULL, NULL);
        const spc_handshake_options_t options = options_of(role);
        spc_handshake_destroy(pair.side[!role].machine);
        pair.side[!role] = side_make(&options);
        exchange(&pair, MESSAGE);
        CHECK_EQ(outcome(&pair, CLIENT), role == CLIENT ? SPC_HANDSHAKE_STRANGER : SPC_HANDSHAKE_OPEN);
        CHECK_EQ(outcome(&pair, SERVER), role == CLIENT ? SPC_HANDSHAKE_STRANGER : SPC_HANDSHAKE_OPEN);
        pair_end(&pair);
    }
}

/* ---- versions, byte orders, a server that is full: both ends know it, and say the same */

TEST(versions) {
    static const uint32_t VERSIONS[][2] = {{SPC_FRAME_VERSION - 1, SPC_FRAME_VERSION},
                                           {SPC_FRAME_VERSION, SPC_FRAME_VERSION - 1},
                                           {1, 0x01000001},
                                           {UINT32_MAX, 3}};
    for (size_t i = 0; i < sizeof VERSIONS / sizeof *VERSIONS; i++) {
        spc_handshake_options_t options[2] = {options_of(CLIENT), options_of(SERVER)};
        options[CLIENT].version = VERSIONS[i][CLIENT];
        options[SERVER].version = VERSIONS[i][SERVER];
        options[SERVER].byte_order = SPC_HANDSHAKE_BIG_ENDIAN; /* the version comes first */
        pair_t pair = pair_make(&options[CLIENT], &options[SERVER]);
        pair.side[SERVER].secret = 0; /* and the secret last */
        exchange(&pair, 7);
        for (int role = CLIENT; role <= SERVER; role++) {
            spc_handshake_peer_t peer;
            CHECK_EQ(outcome(&pair, role), SPC_HANDSHAKE_OTHER_VERSION);
            spc_handshake_peer(pair.side[role].machine, &peer);
            CHECK_EQ_U(peer.version, VERSIONS[i][!role]);
        }
        pair_end(&pair);
    }
    spc_handshake_options_t same[2] = {options_of(CLIENT), options_of(SERVER)};
    same[CLIENT].version = same[SERVER].version = 9;
    run_to(&same[CLIENT], &same[SERVER], SPC_HANDSHAKE_ACCEPTED, SPC_HANDSHAKE_ACCEPTED);
}

TEST(byte_orders) {
    for (int by_client = 1; by_client <= 2; by_client++) {
        for (int by_server = 1; by_server <= 2; by_server++) {
            spc_handshake_options_t options[2] = {options_of(CLIENT), options_of(SERVER)};
            options[CLIENT].byte_order = (uint8_t)by_client;
            options[SERVER].byte_order = (uint8_t)by_server;
            spc_handshake_outcome_t expected =
                by_client == by_server ? SPC_HANDSHAKE_ACCEPTED : SPC_HANDSHAKE_OTHER_BYTE_ORDER;
            pair_t pair = pair_make(&options[CLIENT], &options[SERVER]);
            exchange(&pair, MESSAGE);
            for (int role = CLIENT; role <= SERVER; role++) {
                spc_handshake_peer_t peer;
                CHECK_EQ(outcome(&pair, role), expected);
                spc_handshake_peer(pair.side[role].machine, &peer);
                CHECK_EQ(peer.byte_order, options[!role].byte_order);
            }
            pair_end(&pair);
        }
    }
}

/* A server that does not look: then the client does, and tells it. */
TEST(versions_and_byte_orders_that_the_client_finds) {
    static const struct {
        int at;
        spc_handshake_outcome_t outcome;
    } CHANGES[] = {{AT_VERSION, SPC_HANDSHAKE_OTHER_VERSION},
                   {AT_BYTE_ORDER, SPC_HANDSHAKE_OTHER_BYTE_ORDER}};
    for (int i = 0; i < 2; i++) {
        pair_t pair = pair_make(NULL, NULL);
        pair.flip_by = SERVER;
        pair.flip = 8 * (size_t)CHANGES[i].at + 1;
        exchange(&pair, MESSAGE);
        CHECK_EQ(outcome(&pair, CLIENT), CHANGES[i].outcome);
        CHECK_EQ_U(pair.side[CLIENT].sent_bytes, 2 * MESSAGE);
        CHECK_EQ(pair.side[CLIENT].sent[MESSAGE + AT_KIND], KIND_VERDICT);
        CHECK_EQ(pair.side[CLIENT].sent[MESSAGE + AT_VERDICT], CHANGES[i].outcome);
        CHECK_EQ(outcome(&pair, SERVER), SPC_HANDSHAKE_STRANGER); /* which knows itself better than we say */
        pair_end(&pair);
    }
}

TEST(a_full_server) {
    spc_handshake_options_t server = options_of(SERVER);
    server.full = true;
    run_to(NULL, &server, SPC_HANDSHAKE_FULL, SPC_HANDSHAKE_FULL);
}

/* The verdicts, and their moments: to a client in place of any answer, to a server in place of a proof. */
TEST(verdicts) {
    spc_handshake_options_t client = options_of(CLIENT), server = options_of(SERVER);
    pair_t pair = pair_make(NULL, NULL);
    exchange(&pair, MESSAGE);
    for (int said = 0; said < 256; said++) {
        unsigned char bytes[2 * MESSAGE] = {'s', 'p', 'c', 'h', KIND_VERDICT, (unsigned char)said};
        bytes[AT_VERSION] = SPC_HANDSHAKE_VERSION;
        client.byte_order = bytes[AT_BYTE_ORDER] = SPC_HANDSHAKE_LITTLE_ENDIAN;
        bool fits = said == SPC_HANDSHAKE_REFUSED || said == SPC_HANDSHAKE_FULL;
        CHECK_EQ(answer_by(&client, bytes, MESSAGE), fits ? said : SPC_HANDSHAKE_STRANGER);
        CHECK_EQ(answer_by(&server, bytes, MESSAGE), SPC_HANDSHAKE_STRANGER);
        unsigned char both[2 * MESSAGE];
        memcpy(both, pair.side[CLIENT].sent, MESSAGE);
        memcpy(both + MESSAGE, bytes, MESSAGE);
        server.byte_order = pair.side[CLIENT].sent[AT_BYTE_ORDER];
        both[MESSAGE + AT_BYTE_ORDER] = server.byte_order;
        CHECK_EQ(answer_by(&server, both, 2 * MESSAGE),
                 said == SPC_HANDSHAKE_REFUSED ? said : SPC_HANDSHAKE_STRANGER);
        bytes[AT_VERSION] = SPC_HANDSHAKE_VERSION - 1;
        fits |= said == SPC_HANDSHAKE_OTHER_VERSION;
        CHECK_EQ(answer_by(&client, bytes, MESSAGE), fits ? said : SPC_HANDSHAKE_STRANGER);
    }
    pair_end(&pair);
}

/* ---- those who do not speak the language, or stop in the middle */

TEST(not_ours) {
    static const char *const WORDS[] = {"GET / HTTP/1.1\r\n", "SSH-2.0-", "spcf", "\x16\x03\x01", "s", "spc"};
    for (int role = CLIENT; role <= SERVER; role++) {
        const spc_handshake_options_t options = options_of(role);
        for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++) {
            bool may_be =
                strncmp(WORDS[i], "spch", strlen(WORDS[i])) == 0; /* known by the first wrong byte */
            CHECK_EQ(answer_by(&options, (const unsigned char *)WORDS[i], strlen(WORDS[i])),
                     may_be ? SPC_HANDSHAKE_CLOSED : SPC_HANDSHAKE_STRANGER);
        }
    }
}

/* Bytes that are 0 in this version are 0; so two versions that look alike are alike. */
TEST(zeros_are_zeros) {
    pair_t pair = pair_make(NULL, NULL);
    exchange(&pair, MESSAGE);
    for (int role = CLIENT; role <= SERVER; role++) {
        const spc_handshake_options_t options = options_of(role);
        for (int at = AT_VERDICT; at < AT_RANDOM; at += at == AT_VERDICT ? 2 : at == 7 ? 11 : 1) {
            unsigned char said[MESSAGE];
            memcpy(said, pair.side[!role].sent, MESSAGE);
            said[at] = 0x10;
            CHECK_EQ(answer_by(&options, said, MESSAGE), SPC_HANDSHAKE_STRANGER);
        }
    }
    pair_end(&pair);
}

/* Both ends know whether TLS follows, if one of them says so; and no answer can take back what a client has said. */
TEST(encryption) {
    for (int by = 0; by < 4; by++) {
        spc_handshake_options_t options[2] = {options_of(CLIENT), options_of(SERVER)};
        options[CLIENT].encrypted = (by & 1) != 0;
        options[SERVER].encrypted = (by & 2) != 0;
        pair_t pair = pair_make(&options[CLIENT], &options[SERVER]);
        exchange(&pair, MESSAGE);
        for (int role = CLIENT; role <= SERVER; role++) {
            spc_handshake_peer_t peer;
            CHECK_EQ(outcome(&pair, role), SPC_HANDSHAKE_ACCEPTED);
            spc_handshake_peer(pair.side[role].machine, &peer);
            CHECK_EQ(peer.encrypted, by != 0);
        }
        pair_end(&pair);
    }
    pair_t plain = pair_make(NULL, NULL);
    exchange(&plain, MESSAGE);
    spc_handshake_options_t client = options_of(CLIENT);
    client.encrypted = true;
    CHECK_EQ(answer_by(&client, plain.side[SERVER].sent, MESSAGE), SPC_HANDSHAKE_STRANGER);
    pair_end(&plain);
}

TEST(truncated) {
    pair_t pair = pair_make(NULL, NULL);
    exchange(&pair, MESSAGE);
    for (int role = CLIENT; role <= SERVER; role++) {
        const spc_handshake_options_t options = options_of(role);
        for (size_t length = 0; length < 2 * MESSAGE; length++) {
            CHECK_EQ(answer_by(&options, pair.side[!role].sent, length), SPC_HANDSHAKE_CLOSED);
        }
    }
    pair_end(&pair);
}

/* More than was asked for, or out of turn: after each number of moves of an honest pair. */
TEST(too_long) {
    unsigned char bytes[1000];
    memset(bytes, 's', sizeof bytes);
    for (int role = CLIENT; role <= SERVER; role++) {
        bool over = false;
        for (int moves = 0; !over; moves++) {
            pair_t pair = pair_make(NULL, NULL);
            spc_handshake_t *machine = pair.side[role].machine;
            for (int i = 0; i < moves; i++) {
                move(&pair, i % 2, 37);
            }
            over = outcome(&pair, role) == SPC_HANDSHAKE_ACCEPTED;
            size_t wants = spc_handshake_wants(machine);
            CHECK_EQ(spc_handshake_feed(machine, START, bytes, moves % 3 ? wants + 1 : sizeof bytes),
                     SPC_EINVAL);
            CHECK_EQ(spc_handshake_step(machine, START), SPC_HANDSHAKE_OVER);
            CHECK_EQ(outcome(&pair, role), over ? SPC_HANDSHAKE_ACCEPTED : SPC_HANDSHAKE_STRANGER);
            CHECK_EQ_U(spc_handshake_wants(machine), 0);
            CHECK_EQ(spc_handshake_feed(machine, START, bytes, 1), SPC_EINVAL);
            pair_end(&pair);
        }
    }
}

/* ---- time */

/* After each number of moves the last moment is soon enough, and the next is not. */
TEST(late) {
    const uint64_t deadline = START + SPC_HANDSHAKE_TIMEOUT_NS;
    for (int moves = 0; moves <= 20; moves++) {
        for (int role = CLIENT; role <= SERVER; role++) {
            pair_t pair = pair_make(NULL, NULL);
            spc_handshake_t *machine = pair.side[role].machine;
            CHECK_EQ_U(spc_handshake_deadline_ns(machine), deadline);
            for (int i = 0; i < moves; i++) {
                move(&pair, i % 2, 37);
            }
            spc_handshake_outcome_t before = outcome(&pair, role);
            spc_handshake_step(machine, deadline - 1);
            CHECK_EQ(outcome(&pair, role), before);
            if (moves % 2) {
                CHECK_EQ(spc_handshake_feed(machine, deadline, "s", 1), SPC_ETIMEDOUT);
            }
            CHECK_EQ(spc_handshake_step(machine, deadline), SPC_HANDSHAKE_OVER);
            CHECK_EQ(outcome(&pair, role), before == SPC_HANDSHAKE_OPEN ? SPC_HANDSHAKE_LATE : before);
            pair_end(&pair);
        }
    }
}

/* A verdict that can no longer be sent is nevertheless the outcome. */
TEST(late_with_a_verdict) {
    for (int closed = 0; closed <= 1; closed++) {
        spc_handshake_options_t client = options_of(CLIENT);
        client.version = SPC_HANDSHAKE_VERSION + 1;
        pair_t pair = pair_make(&client, NULL);
        spc_handshake_t *server = pair.side[SERVER].machine;
        move(&pair, CLIENT, MESSAGE);
        move(&pair, SERVER, MESSAGE);
        write_some(&pair.side[SERVER], 1);
        CHECK_EQ(outcome(&pair, SERVER), SPC_HANDSHAKE_OPEN);
        if (closed) {
            spc_handshake_closed(server);
        } else {
            spc_handshake_step(server, START + SPC_HANDSHAKE_TIMEOUT_NS);
        }
        CHECK_EQ(outcome(&pair, SERVER), SPC_HANDSHAKE_OTHER_VERSION);
        pair_end(&pair);
    }
}

TEST(other_deadlines) {
    spc_handshake_options_t options = options_of(SERVER);
    options.timeout_ns = 5;
    side_t side = side_make(&options);
    CHECK_EQ_U(spc_handshake_deadline_ns(side.machine), START + 5);
    spc_handshake_destroy(side.machine);
    options.timeout_ns = UINT64_MAX;
    side = side_make(&options);
    CHECK_EQ_U(spc_handshake_deadline_ns(side.machine), UINT64_MAX);
    spc_handshake_destroy(side.machine);
}

/* ---- drivers that do not do as they should */

TEST(misuse) {
    pair_t pair = pair_make(NULL, NULL);
    spc_handshake_t *client = pair.side[CLIENT].machine, *server = pair.side[SERVER].machine;
    unsigned char mac[MAC] = {0};
    const unsigned char *bytes;
    CHECK_EQ_PTR(spc_handshake_to_sign(client), NULL);
    CHECK_EQ(spc_handshake_sign(client, mac), SPC_EINVAL);
    CHECK_EQ(spc_handshake_sent(client, MESSAGE + 1), SPC_EINVAL);
    CHECK_EQ_U(spc_handshake_output(client, &bytes), MESSAGE);
    CHECK_EQ_U(spc_handshake_output(server, &bytes), 0);
    CHECK_EQ(spc_handshake_sent(server, 1), SPC_EINVAL);
    CHECK_OK(spc_handshake_sent(server, 0));
    CHECK_OK(spc_handshake_feed(server, START, NULL, 0));
    exchange(&pair, MESSAGE);
    CHECK_EQ(outcome(&pair, CLIENT), SPC_HANDSHAKE_ACCEPTED);
    CHECK_EQ(outcome(&pair, SERVER), SPC_HANDSHAKE_ACCEPTED);
    CHECK_EQ(spc_handshake_sign(client, mac), SPC_EINVAL);
    spc_handshake_closed(client);
    CHECK_EQ(outcome(&pair, CLIENT), SPC_HANDSHAKE_ACCEPTED);
    pair_end(&pair);
}

TEST(options_that_cannot_be) {
    spc_handshake_t *machine = NULL;
    spc_handshake_options_t options = options_of(CLIENT);
    options.role = (spc_handshake_role_t)2;
    CHECK_EQ(spc_handshake_create(&options, START, &machine), SPC_EINVAL);
    options = options_of(CLIENT);
    options.byte_order = 3;
    CHECK_EQ(spc_handshake_create(&options, START, &machine), SPC_EINVAL);
    options = options_of(CLIENT);
    options.full = true;
    CHECK_EQ(spc_handshake_create(&options, START, &machine), SPC_EINVAL);
    options = options_of(SERVER);
    memset(options.nonce, 0, sizeof options.nonce);
    CHECK_EQ(spc_handshake_create(&options, START, &machine), SPC_EINVAL);
    CHECK_EQ_PTR(machine, NULL);
    spc_handshake_destroy(NULL);
}

TEST_MAIN()
