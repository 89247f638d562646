/* SPDX-License-Identifier: MIT */
/*
 * Any bytes to the handshake, in two ways; the first byte of the input says which.
 *
 * A stranger speaks to one end: the rest of the input is how much it says at a time, and what. Its proof can be put
 * right, so that what lies behind it is reached, too. It is accepted only if all that it said is what it should say.
 *
 * Or both ends speak to each other, and the input is which bytes are changed on the way: who has accepted has not been
 * lied to.
 */
#include "fuzz.h"

#include "base/spc_error.h"
#include "net/wire/spc_handshake.h"

enum { MESSAGE = SPC_HANDSHAKE_MESSAGE_BYTES, MAC = SPC_HANDSHAKE_MAC_BYTES, AT_RANDOM = 32, AT_KIND = 4 };
enum {
    TWO_ENDS = 1,
    IS_SERVER = 2,
    FULL = 4,
    HONEST_PROOF = 8,
    HONEST_START = 16,
    NO_SECRET = 32,
    LATE_ONCE = 64
};
enum { CLIENT = SPC_HANDSHAKE_CLIENT, SERVER = SPC_HANDSHAKE_SERVER };

/* Stands for HMAC-SHA-256 by a secret that the input does not know. */
static void make_mac(const unsigned char *bytes, unsigned char *mac) {
    uint64_t state = UINT64_C(0x5ec2e7);
    for (int i = 0; i < SPC_HANDSHAKE_SIGNED_BYTES; i++) {
        state ^= bytes[i];
        state = next_random(&state);
    }
    for (int i = 0; i < MAC; i++) {
        mac[i] = (unsigned char)next_random(&state);
    }
}

static void sign(spc_handshake_t *machine, bool has_secret) {
    unsigned char mac[MAC];
    MUST(spc_handshake_to_sign(machine) != NULL);
    make_mac(spc_handshake_to_sign(machine), mac);
    MUST(spc_handshake_sign(machine, has_secret ? mac : NULL) == SPC_OK);
}

static spc_handshake_t *machine_make(int role, bool full) {
    spc_handshake_options_t options = {
        .role = (spc_handshake_role_t)role, .byte_order = SPC_HANDSHAKE_LITTLE_ENDIAN, .full = full};
    spc_handshake_t *machine;
    options.job = role == CLIENT ? 7 : 0;
    options.box = role == CLIENT ? 3 : 0;
    memset(options.nonce, role == CLIENT ? 0xc1 : 0x5e, sizeof options.nonce);
    MUST(spc_handshake_create(&options, 0, &machine) == SPC_OK);
    return machine;
}

/* ---- a stranger and one end */

typedef struct talk {
    spc_handshake_t *machine;
    input_t input;
    int how, role;
    unsigned char said[2][4 * MESSAGE]; /* by the role of who said it */
    size_t said_bytes[2];
    bool was_late;
} talk_t;

/* The byte that the stranger should say at this place, if it knew the secret. */
static unsigned char honest_byte(const talk_t *talk, size_t at) {
    static const unsigned char START[2][MESSAGE] = {
        [CLIENT] = {'s', 'p', 'c', 'h', 1, 0, 1, 0, SPC_HANDSHAKE_VERSION, 0, 0, 0, 7, 0, 0, 0, 3},
        [SERVER] = {'s', 'p', 'c', 'h', 2, 0, 1, 0, SPC_HANDSHAKE_VERSION, 0, 0, 0, 7, 0, 0, 0, 3},
    };
    const int stranger = !talk->role;
    if (at < MESSAGE) {
        return at < AT_RANDOM ? START[stranger][at] : 0x33;
    }
    if (at % MESSAGE == AT_KIND) {
        return stranger == CLIENT ? 3 : 4;
    }
    if (at % MESSAGE < AT_RANDOM) {
        return talk->said[stranger][at % MESSAGE];
    }
    unsigned char to_sign[SPC_HANDSHAKE_SIGNED_BYTES] = {0}, mac[MAC];
    memcpy(to_sign, stranger == CLIENT ? "spcomm client" : "spcomm server", 13);
    memcpy(to_sign + 16, talk->said[CLIENT], MESSAGE);
    memcpy(to_sign + 16 + MESSAGE, talk->said[SERVER], MESSAGE);
    make_mac(to_sign, mac);
    return mac[at % MESSAGE - AT_RANDOM];
}

/* Some bytes, perhaps more than it may. */
static void say(talk_t *talk) {
    const int stranger = !talk->role;
    unsigned char bytes[256];
    size_t length = input_byte(&talk->input), at = talk->said_bytes[stranger];
    size_t wants = spc_handshake_wants(talk->machine);
    bool honest = at < MESSAGE ? talk->how & HONEST_START : talk->how & HONEST_PROOF;

    MUST(wants >= 1 && wants <= MESSAGE && at + wants <= 2 * MESSAGE);
    if (talk->input.left_bytes == 0 && !honest) {
        spc_handshake_closed(talk->machine);
        return;
    }
    length = length == 0 || (honest && length > wants) ? wants : length;
    for (size_t i = 0; i < length; i++) {
        bytes[i] = honest && i < wants ? honest_byte(talk, at + i) : input_byte(&talk->input);
    }
    unsigned char *piece = exactly(bytes, length);
    int status = spc_handshake_feed(talk->machine, 0, piece, length);
    free(piece);
    MUST(status == (length <= wants ? SPC_OK : SPC_EINVAL));
    if (status == SPC_OK) {
        memcpy(talk->said[stranger] + at, bytes, length);
        talk->said_bytes[stranger] += length;
    } else {
        MUST(spc_handshake_outcome(talk->machine) == SPC_HANDSHAKE_STRANGER);
    }
}

static void hear(talk_t *talk) {
    const unsigned char *bytes;
    size_t length = spc_handshake_output(talk->machine, &bytes), taken = input_byte(&talk->input);
    MUST(length >= 1 && length <= MESSAGE);
    MUST(spc_handshake_sent(talk->machine, length + 1) == SPC_EINVAL);
    taken = taken == 0 || taken > length ? length : taken;
    MUST(talk->said_bytes[talk->role] + taken <= sizeof talk->said[0]);
    memcpy(talk->said[talk->role] + talk->said_bytes[talk->role], bytes, taken);
    talk->said_bytes[talk->role] += taken;
    MUST(spc_handshake_sent(talk->machine, taken) == SPC_OK);
}

/* Whether the stranger has said what a friend would, but for the nonce that it may choose. */
static bool was_honest(const talk_t *talk) {
    const int stranger = !talk->role;
    for (size_t at = 0; at < 2 * MESSAGE; at++) {
        bool its_own = at < MESSAGE && (at >= AT_RANDOM || (stranger == CLIENT && at >= 12 && at < 18));
        if (!its_own && talk->said[stranger][at] != honest_byte(talk, at)) {
            return false;
        }
    }
    return talk->said_bytes[stranger] == 2 * MESSAGE;
}

static void with_a_stranger(int how, input_t input) {
    talk_t talk = {.how = how, .role = how & IS_SERVER ? SERVER : CLIENT, .input = input};
    const bool full = talk.role == SERVER && how & FULL;
    spc_handshake_step_t step;
    talk.machine = machine_make(talk.role, full);
    while ((step = spc_handshake_step(talk.machine, 0)) != SPC_HANDSHAKE_OVER) {
        MUST(spc_handshake_outcome(talk.machine) == SPC_HANDSHAKE_OPEN);
        if (how & LATE_ONCE && talk.input.left_bytes == 0) {
            talk.was_late = true;
            step = spc_handshake_step(talk.machine, SPC_HANDSHAKE_TIMEOUT_NS);
            MUST(step == SPC_HANDSHAKE_OVER);
        } else if (step == SPC_HANDSHAKE_READ) {
            say(&talk);
        } else if (step == SPC_HANDSHAKE_WRITE) {
            hear(&talk);
        } else {
            sign(talk.machine, !(how & NO_SECRET));
        }
    }
    spc_handshake_outcome_t outcome = spc_handshake_outcome(talk.machine);
    MUST(outcome > SPC_HANDSHAKE_OPEN && outcome <= SPC_HANDSHAKE_CLOSED);
    if (outcome == SPC_HANDSHAKE_ACCEPTED) {
        MUST(was_honest(&talk) && !(how & NO_SECRET) && !full && !talk.was_late);
    } else if (talk.role
               == SERVER) { /* nothing made with the secret, whole, for who has not proved that it has it */
        MUST(talk.said_bytes[SERVER] < 2 * MESSAGE || talk.said[SERVER][MESSAGE + AT_KIND] != 4);
    }
    MUST(spc_handshake_feed(talk.machine, 0, "s", 1) == SPC_EINVAL);
    MUST(spc_handshake_outcome(talk.machine) == outcome);
    spc_handshake_destroy(talk.machine);
}

/* ---- both ends, and somebody between them */

typedef struct wire {
    spc_handshake_t *machine[2];
    unsigned char on_the_way[2][4 * MESSAGE]; /* by who has said it */
    size_t said_bytes[2], heard_bytes[2];
    unsigned char change[2][4 * MESSAGE];
} wire_t;

static bool move(wire_t *wire, int role, size_t most) {
    spc_handshake_t *machine = wire->machine[role];
    const unsigned char *bytes;
    unsigned char piece[MESSAGE];
    size_t length, at = wire->heard_bytes[!role];

    switch (spc_handshake_step(machine, 0)) {
    case SPC_HANDSHAKE_WRITE:
        length = spc_handshake_output(machine, &bytes);
        length = length < most ? length : most;
        memcpy(wire->on_the_way[role] + wire->said_bytes[role], bytes, length);
        wire->said_bytes[role] += length;
        MUST(spc_handshake_sent(machine, length) == SPC_OK);
        return true;
    case SPC_HANDSHAKE_SIGN:
        sign(machine, true);
        return true;
    case SPC_HANDSHAKE_READ:
        length = wire->said_bytes[!role] - at;
        length = length < most ? length : most;
        length = length < spc_handshake_wants(machine) ? length : spc_handshake_wants(machine);
        for (size_t i = 0; i < length; i++) {
            piece[i] = wire->on_the_way[!role][at + i] ^ wire->change[!role][at + i];
        }
        wire->heard_bytes[!role] += length;
        MUST(spc_handshake_feed(machine, 0, piece, length) == SPC_OK);
        return length > 0;
    default:
        return false;
    }
}

static bool is_changed(const wire_t *wire, int by, size_t from, size_t to) {
    for (; from < to; from++) {
        if (wire->change[by][from] != 0) {
            return true;
        }
    }
    return false;
}

static void with_each_other(input_t input) {
    wire_t wire = {.machine = {machine_make(CLIENT, false), machine_make(SERVER, false)}};
    size_t most = 1 + input_byte(&input) % MESSAGE;
    while (input.left_bytes > 0) {
        uint8_t place = input_byte(&input), value = input_byte(&input);
        wire.change[place & 1][place >> 1] = value;
    }
    bool moved;
    do {
        moved = move(&wire, CLIENT, most);
        moved |= move(&wire, SERVER, most);
    } while (moved);
    bool client = spc_handshake_outcome(wire.machine[CLIENT]) == SPC_HANDSHAKE_ACCEPTED;
    bool server = spc_handshake_outcome(wire.machine[SERVER]) == SPC_HANDSHAKE_ACCEPTED;
    bool early = is_changed(&wire, CLIENT, 0, 2 * MESSAGE) || is_changed(&wire, SERVER, 0, MESSAGE);
    MUST(server == !early);
    MUST(client == (!early && !is_changed(&wire, SERVER, MESSAGE, 2 * MESSAGE)));
    spc_handshake_destroy(wire.machine[CLIENT]);
    spc_handshake_destroy(wire.machine[SERVER]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length_bytes) {
    input_t input = {data, length_bytes};
    int how = input_byte(&input);
    if (how & TWO_ENDS) {
        with_each_other(input);
    } else {
        with_a_stranger(how, input);
    }
    return 0;
}
