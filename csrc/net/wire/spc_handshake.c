/* SPDX-License-Identifier: MIT */
#include "net/wire/spc_handshake.h"

#include <stdlib.h>
#include <string.h>

#include "base/spc_error.h"

enum { MESSAGE_BYTES = SPC_HANDSHAKE_MESSAGE_BYTES, LABEL_BYTES = 16 };

static const unsigned char MAGIC[4] = {'s', 'p', 'c', 'h'};
static const char LABELS[2][LABEL_BYTES] = {
    [SPC_HANDSHAKE_CLIENT] = "spcomm client",
    [SPC_HANDSHAKE_SERVER] = "spcomm server",
};

/* Offsets of the fields of a message; numbers are little-endian. */
enum {
    AT_MAGIC = 0,
    AT_KIND = 4,
    AT_VERDICT = 5, /* an outcome; 0 except in a verdict */
    AT_BYTE_ORDER = 6,
    AT_ENCRYPTED = 7, /* 1: the connection crosses a network, as this end sees it; 0 otherwise */
    AT_VERSION = 8,
    AT_JOB = 12,
    AT_BOX = 16,
    AT_ZEROS = 18,
    AT_RANDOM = 32, /* a nonce or a MAC; 0 in a verdict */
};

enum { KIND_HELLO = 1, KIND_CHALLENGE = 2, KIND_CLIENT_PROOF = 3, KIND_SERVER_PROOF = 4, KIND_VERDICT = 5 };

_Static_assert(AT_RANDOM + SPC_HANDSHAKE_NONCE_BYTES == MESSAGE_BYTES, "a nonce ends a message");
_Static_assert(AT_RANDOM + SPC_HANDSHAKE_MAC_BYTES == MESSAGE_BYTES, "so does a MAC");
_Static_assert(SPC_HANDSHAKE_SIGNED_BYTES == LABEL_BYTES + 2 * MESSAGE_BYTES, "role, HELLO, CHALLENGE");
_Static_assert(2 * MESSAGE_BYTES <= SPC_HANDSHAKE_BYTES_MAX, "each end accepts two messages at most");

typedef enum phase {
    HELLO,
    CHALLENGE,
    OWN_MAC,
    PEER_MAC,
    CLIENT_PROOF,
    SERVER_PROOF,
    DONE,
    VERDICT,
    ENDED
} phase_t;

/* Phases of each role, in this order; a verdict ends them early. */
static const phase_t ORDER[2][7] = {
    [SPC_HANDSHAKE_CLIENT] = {HELLO, CHALLENGE, OWN_MAC, CLIENT_PROOF, SERVER_PROOF, PEER_MAC, DONE},
    [SPC_HANDSHAKE_SERVER] = {HELLO, CHALLENGE, CLIENT_PROOF, PEER_MAC, OWN_MAC, SERVER_PROOF, DONE},
};

struct spc_handshake {
    spc_handshake_options_t options; /* a server's job and box: those of the client, from HELLO on */
    uint64_t deadline_ns;
    phase_t phase;
    int place; /* of the phase in ORDER */
    spc_handshake_outcome_t outcome; /* known before the end, while a verdict is yet to be sent */
    uint32_t peer_version;
    uint8_t peer_byte_order;
    bool peer_encrypted; /* the value in CHALLENGE holds */
    size_t moved_bytes; /* of the message that arrives or leaves */
    unsigned char incoming[MESSAGE_BYTES];
    unsigned char outgoing[MESSAGE_BYTES];
    unsigned char to_sign[SPC_HANDSHAKE_SIGNED_BYTES]; /* HELLO and CHALLENGE stay here, too */
};

/* ---- messages */

static void put(unsigned char *at, uint32_t value, int bytes) {
    for (int i = 0; i < bytes; i++) {
        at[i] = (unsigned char)(value >> 8 * i);
    }
}

static uint32_t get(const unsigned char *at, int bytes) {
    uint32_t value = 0;
    for (int i = 0; i < bytes; i++) {
        value |= (uint32_t)at[i] << 8 * i;
    }
    return value;
}

/* The first message of one role, as it was sent. */
static unsigned char *said_by(spc_handshake_t *self, spc_handshake_role_t role) {
    return self->to_sign + LABEL_BYTES + (role == SPC_HANDSHAKE_SERVER ? MESSAGE_BYTES : 0);
}

static spc_handshake_role_t peer_role(const spc_handshake_t *self) {
    return self->options.role == SPC_HANDSHAKE_CLIENT ? SPC_HANDSHAKE_SERVER : SPC_HANDSHAKE_CLIENT;
}

static void prepare(spc_handshake_t *self, unsigned char kind, const unsigned char *random) {
    unsigned char *message = self->outgoing;
    memset(message, 0, MESSAGE_BYTES);
    memcpy(message + AT_MAGIC, MAGIC, sizeof MAGIC);
    message[AT_KIND] = kind;
    message[AT_BYTE_ORDER] = self->options.byte_order;
    message[AT_ENCRYPTED] = self->options.encrypted;
    put(message + AT_VERSION, self->options.version, 4);
    put(message + AT_JOB, self->options.job, 4);
    put(message + AT_BOX, self->options.box, 2);
    if (random != NULL) {
        memcpy(message + AT_RANDOM, random, SPC_HANDSHAKE_NONCE_BYTES);
    }
    self->moved_bytes = 0;
}

/* The role that speaks in this phase; nobody: no message is due. */
static bool is_said_by(phase_t phase, spc_handshake_role_t role) {
    if (phase == HELLO || phase == CLIENT_PROOF) {
        return role == SPC_HANDSHAKE_CLIENT;
    }
    return (phase == CHALLENGE || phase == SERVER_PROOF) && role == SPC_HANDSHAKE_SERVER;
}

static bool writes(const spc_handshake_t *self) {
    return self->phase == VERDICT || is_said_by(self->phase, self->options.role);
}

static bool reads(const spc_handshake_t *self) {
    return is_said_by(self->phase, peer_role(self));
}

/* ---- from phase to phase */

static void end(spc_handshake_t *self, spc_handshake_outcome_t outcome) {
    if (self->outcome == SPC_HANDSHAKE_OPEN) { /* else a verdict was decided, or the handshake is over */
        self->outcome = outcome;
    }
    self->phase = ENDED;
}

/* Ends the handshake, and notifies the other end, which waits for an answer. */
static void tell(spc_handshake_t *self, spc_handshake_outcome_t outcome) {
    prepare(self, KIND_VERDICT, NULL);
    self->outgoing[AT_VERDICT] = (unsigned char)outcome;
    self->outcome = outcome;
    self->phase = VERDICT;
}

static void begin(spc_handshake_t *self) {
    const spc_handshake_role_t role = self->options.role;
    self->phase = ORDER[role][self->place];
    self->moved_bytes = 0;
    if (self->phase == DONE) {
        end(self, SPC_HANDSHAKE_ACCEPTED);
    } else if (self->phase == OWN_MAC || self->phase == PEER_MAC) {
        memcpy(self->to_sign, LABELS[self->phase == OWN_MAC ? role : peer_role(self)], LABEL_BYTES);
    } else if (self->place <= 1 && writes(self)) {
        prepare(self, self->phase == HELLO ? KIND_HELLO : KIND_CHALLENGE, self->options.nonce);
        memcpy(said_by(self, role), self->outgoing, MESSAGE_BYTES);
    }
}

static void advance(spc_handshake_t *self) {
    self->place++;
    begin(self);
}

/* ---- arriving messages */

static bool are_zeros(const unsigned char *bytes, size_t length_bytes) {
    unsigned char any = 0;
    for (size_t i = 0; i < length_bytes; i++) {
        any |= bytes[i];
    }
    return any == 0;
}

/* Its duration reveals nothing about where the two differ. */
static bool are_equal(const unsigned char *one, const unsigned char *other, size_t length_bytes) {
    volatile unsigned char differ = 0;
    for (size_t i = 0; i < length_bytes; i++) {
        differ |= one[i] ^ other[i];
    }
    return differ == 0;
}

static void note_peer(spc_handshake_t *self) {
    self->peer_version = get(self->incoming + AT_VERSION, 4);
    self->peer_byte_order = self->incoming[AT_BYTE_ORDER];
}

/* The reason in the other end's words. A peer that claims a difference in version or byte order, but shows none, is not
 * to be believed. */
static void take_verdict(spc_handshake_t *self) {
    unsigned char said = self->incoming[AT_VERDICT];
    note_peer(self);
    if (said == SPC_HANDSHAKE_REFUSED
        || (said == SPC_HANDSHAKE_FULL && self->options.role == SPC_HANDSHAKE_CLIENT)
        || (said == SPC_HANDSHAKE_OTHER_VERSION && self->peer_version != self->options.version)
        || (said == SPC_HANDSHAKE_OTHER_BYTE_ORDER && self->peer_byte_order != self->options.byte_order)) {
        end(self, (spc_handshake_outcome_t)said);
    } else {
        end(self, SPC_HANDSHAKE_STRANGER);
    }
}

/* Takes HELLO or CHALLENGE. In a message of another version, only the version is checked. */
static void take_first(spc_handshake_t *self) {
    const unsigned char *message = self->incoming;
    note_peer(self);
    if (self->peer_version != self->options.version) {
        tell(self, SPC_HANDSHAKE_OTHER_VERSION);
        return;
    }
    if (message[AT_VERDICT] != 0 || message[AT_ENCRYPTED] > 1
        || !are_zeros(message + AT_ZEROS, AT_RANDOM - AT_ZEROS)) {
        end(self, SPC_HANDSHAKE_STRANGER);
        return;
    }
    if (self->peer_byte_order != self->options.byte_order) {
        tell(self, SPC_HANDSHAKE_OTHER_BYTE_ORDER);
        return;
    }
    self->peer_encrypted = message[AT_ENCRYPTED] == 1;
    if (self->options.role == SPC_HANDSHAKE_SERVER) {
        self->options.job = get(message + AT_JOB, 4);
        self->options.box = (uint16_t)get(message + AT_BOX, 2);
        self->options.encrypted = self->options.encrypted || self->peer_encrypted;
    } else if (get(message + AT_JOB, 4) != self->options.job || get(message + AT_BOX, 2) != self->options.box
               || (self->options.encrypted && !self->peer_encrypted)) {
        end(self, SPC_HANDSHAKE_STRANGER);
        return;
    }
    memcpy(said_by(self, peer_role(self)), message, MESSAGE_BYTES);
    if (self->options.full) {
        tell(self, SPC_HANDSHAKE_FULL);
    } else if (memcmp(message + AT_RANDOM, self->options.nonce, SPC_HANDSHAKE_NONCE_BYTES) == 0) {
        tell(self, SPC_HANDSHAKE_REFUSED);
    } else {
        advance(self);
    }
}

/* The peer repeats what it declared before; the MAC is checked when ours is there. */
static void take_proof(spc_handshake_t *self) {
    const unsigned char *before = said_by(self, peer_role(self));
    if (memcmp(self->incoming + AT_VERDICT, before + AT_VERDICT, AT_RANDOM - AT_VERDICT) != 0) {
        end(self, SPC_HANDSHAKE_STRANGER);
    } else {
        advance(self);
    }
}

static void take_message(spc_handshake_t *self) {
    static const unsigned char KINDS[] = {
        [HELLO] = KIND_HELLO,
        [CHALLENGE] = KIND_CHALLENGE,
        [CLIENT_PROOF] = KIND_CLIENT_PROOF,
        [SERVER_PROOF] = KIND_SERVER_PROOF,
    };
    unsigned char kind = self->incoming[AT_KIND];
    if (kind == KIND_VERDICT && self->phase != HELLO) {
        take_verdict(self);
    } else if (kind != KINDS[self->phase]) {
        end(self, SPC_HANDSHAKE_STRANGER);
    } else if (self->place <= 1) {
        take_first(self);
    } else {
        take_proof(self);
    }
}

/* ---- the driver's side */

static uint8_t native_byte_order(void) {
    const uint16_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return first == 1 ? SPC_HANDSHAKE_LITTLE_ENDIAN : SPC_HANDSHAKE_BIG_ENDIAN;
}

static bool are_possible(const spc_handshake_options_t *options) {
    return (options->role == SPC_HANDSHAKE_CLIENT || options->role == SPC_HANDSHAKE_SERVER)
           && options->byte_order <= SPC_HANDSHAKE_BIG_ENDIAN
           && (!options->full || options->role == SPC_HANDSHAKE_SERVER)
           && !are_zeros(options->nonce, sizeof options->nonce);
}

int spc_handshake_create(const spc_handshake_options_t *options, uint64_t now_ns,
                         spc_handshake_t **handshake) {
    if (!are_possible(options)) {
        return SPC_EINVAL;
    }
    spc_handshake_t *self = calloc(1, sizeof *self);
    if (self == NULL) {
        return SPC_ENOMEM;
    }
    self->options = *options;
    if (options->version == 0) {
        self->options.version = SPC_HANDSHAKE_VERSION;
    }
    if (options->byte_order == 0) {
        self->options.byte_order = native_byte_order();
    }
    uint64_t timeout_ns = options->timeout_ns != 0 ? options->timeout_ns : SPC_HANDSHAKE_TIMEOUT_NS;
    self->deadline_ns = timeout_ns < UINT64_MAX - now_ns ? now_ns + timeout_ns : UINT64_MAX;
    begin(self);
    *handshake = self;
    return SPC_OK;
}

void spc_handshake_destroy(spc_handshake_t *handshake) {
    free(handshake);
}

spc_handshake_step_t spc_handshake_step(spc_handshake_t *handshake, uint64_t now_ns) {
    if (now_ns >= handshake->deadline_ns) {
        end(handshake, SPC_HANDSHAKE_LATE);
    }
    if (handshake->phase == ENDED) {
        return SPC_HANDSHAKE_OVER;
    }
    if (writes(handshake)) {
        return SPC_HANDSHAKE_WRITE;
    }
    return reads(handshake) ? SPC_HANDSHAKE_READ : SPC_HANDSHAKE_SIGN;
}

uint64_t spc_handshake_deadline_ns(const spc_handshake_t *handshake) {
    return handshake->deadline_ns;
}

size_t spc_handshake_wants(const spc_handshake_t *handshake) {
    return reads(handshake) ? MESSAGE_BYTES - handshake->moved_bytes : 0;
}

int spc_handshake_feed(spc_handshake_t *handshake, uint64_t now_ns, const void *bytes, size_t length_bytes) {
    if (now_ns >= handshake->deadline_ns) {
        end(handshake, SPC_HANDSHAKE_LATE);
        return SPC_ETIMEDOUT;
    }
    if (length_bytes > spc_handshake_wants(handshake)) {
        end(handshake, SPC_HANDSHAKE_STRANGER);
        return SPC_EINVAL;
    }
    if (length_bytes == 0) {
        return SPC_OK;
    }
    memcpy(handshake->incoming + handshake->moved_bytes, bytes, length_bytes);
    handshake->moved_bytes += length_bytes;
    size_t known = handshake->moved_bytes < sizeof MAGIC ? handshake->moved_bytes : sizeof MAGIC;
    if (memcmp(handshake->incoming + AT_MAGIC, MAGIC, known) != 0) {
        end(handshake, SPC_HANDSHAKE_STRANGER);
    } else if (handshake->moved_bytes == MESSAGE_BYTES) {
        take_message(handshake);
    }
    return SPC_OK;
}

void spc_handshake_closed(spc_handshake_t *handshake) {
    end(handshake, SPC_HANDSHAKE_CLOSED);
}

size_t spc_handshake_output(const spc_handshake_t *handshake, const unsigned char **bytes) {
    *bytes = handshake->outgoing + handshake->moved_bytes;
    return writes(handshake) ? MESSAGE_BYTES - handshake->moved_bytes : 0;
}

int spc_handshake_sent(spc_handshake_t *handshake, size_t length_bytes) {
    const unsigned char *bytes;
    if (length_bytes > spc_handshake_output(handshake, &bytes)) {
        return SPC_EINVAL;
    }
    handshake->moved_bytes += length_bytes;
    if (length_bytes > 0 && handshake->moved_bytes == MESSAGE_BYTES) {
        if (handshake->phase == VERDICT) {
            end(handshake, handshake->outcome);
        } else {
            advance(handshake);
        }
    }
    return SPC_OK;
}

const unsigned char *spc_handshake_to_sign(const spc_handshake_t *handshake) {
    return handshake->phase == OWN_MAC || handshake->phase == PEER_MAC ? handshake->to_sign : NULL;
}

static void judge(spc_handshake_t *self, const unsigned char *mac) {
    bool holds = mac != NULL && are_equal(self->incoming + AT_RANDOM, mac, SPC_HANDSHAKE_MAC_BYTES);
    if (holds) {
        advance(self);
    } else if (self->options.role == SPC_HANDSHAKE_SERVER) {
        tell(self, SPC_HANDSHAKE_REFUSED);
    } else {
        end(self, SPC_HANDSHAKE_REFUSED); /* the server awaits no more bytes of it */
    }
}

int spc_handshake_sign(spc_handshake_t *handshake, const unsigned char mac[SPC_HANDSHAKE_MAC_BYTES]) {
    if (handshake->phase == PEER_MAC) {
        judge(handshake, mac);
    } else if (handshake->phase != OWN_MAC) {
        return SPC_EINVAL;
    } else if (mac == NULL) {
        tell(handshake, SPC_HANDSHAKE_REFUSED);
    } else {
        bool is_client = handshake->options.role == SPC_HANDSHAKE_CLIENT;
        advance(handshake);
        prepare(handshake, is_client ? KIND_CLIENT_PROOF : KIND_SERVER_PROOF, mac);
    }
    return SPC_OK;
}

spc_handshake_outcome_t spc_handshake_outcome(const spc_handshake_t *handshake) {
    return handshake->phase == ENDED ? handshake->outcome : SPC_HANDSHAKE_OPEN;
}

void spc_handshake_peer(const spc_handshake_t *handshake, spc_handshake_peer_t *peer) {
    *peer = (spc_handshake_peer_t){
        .version = handshake->peer_version,
        .byte_order = handshake->peer_byte_order,
        .job = handshake->options.job,
        .box = handshake->options.box,
        .encrypted = handshake->options.encrypted || handshake->peer_encrypted,
    };
}
