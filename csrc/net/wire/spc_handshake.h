/* SPDX-License-Identifier: MIT */
/*
 * spc_handshake: authenticates both ends of a connection: before the first frame, each proves that it knows the secret
 * of its box. It is a state machine without sockets, keys or a clock: its driver gives it bytes and the time, sends the
 * bytes that it returns, and computes HMAC-SHA-256 of a few bytes for it.
 *
 *     client                                            server
 *       HELLO      version, byte order, job, box, nonce    ->
 *       <-   CHALLENGE  version, byte order, job, box, nonce
 *       PROOF      MAC("client", HELLO, CHALLENGE)         ->
 *       <-   PROOF      MAC("server", HELLO, CHALLENGE)            or, in place of any answer, VERDICT: why not
 *
 * Each message is 64 bytes in one layout, which stays the same in all versions, so that different versions can
 * recognise each other. Both MACs are of all bytes of the first two messages, and of the role of the signer:
 *  - Replay: each end signs a fresh random nonce, so a proof of another connection never fits this one.
 *  - Reflection: the roles are signed, so no end can be made to prove for the other; and only a client signs as a
 *    client. A nonce that is our own is refused besides.
 *  - Change on the way: if one bit of HELLO or CHALLENGE changes, neither proof fits; in a PROOF, nothing may differ.
 *  - The client proves first. A stranger that connects gets no bytes made with the secret, and a job that does not
 *    exist is refused at the same point, and in the same words, as a wrong secret.
 *  - A VERDICT is not signed, and never means ACCEPTED. A stranger on the way can end a handshake, or cut a wire.
 * It authenticates the ends when the connection is made; later bytes are neither secret nor protected. So both ends
 * declare whether the connection crosses a network, as they see it. If one does, TLS follows (launch/remote/tls.py),
 * and binds itself to this handshake. Both ends have signed the declarations, too: no stranger on the way can remove
 * them.
 *
 * The driver's loop, for both roles: spc_handshake_step returns the next action, until it returns OVER. Before that, it
 * accepts at most SPC_HANDSHAKE_BYTES_MAX bytes, for at most SPC_HANDSHAKE_TIMEOUT_NS. The driver reads no more than
 * spc_handshake_wants bytes: then the first byte of the first frame is still in the socket when it is over. It sends
 * its output even if the outcome is bad: that is how the other end learns the reason.
 *
 * One thread at a time for each; no function waits.
 */
#ifndef SPC_HANDSHAKE_H
#define SPC_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/wire/spc_frame.h"

#define SPC_HANDSHAKE_VERSION \
    SPC_FRAME_VERSION /* of all that is said on a connection: frames, what is in them, this */
#define SPC_HANDSHAKE_MESSAGE_BYTES 64
#define SPC_HANDSHAKE_NONCE_BYTES 32
#define SPC_HANDSHAKE_MAC_BYTES 32
#define SPC_HANDSHAKE_SIGNED_BYTES 144
#define SPC_HANDSHAKE_BYTES_MAX 256
#define SPC_HANDSHAKE_TIMEOUT_NS UINT64_C(2000000000)

/* X(name, number, what has happened). The numbers that a VERDICT can carry stay the same in all versions. */
#define SPC_HANDSHAKE_OUTCOMES(X)                                               \
    X(OPEN, 0, "it is not over")                                                \
    X(ACCEPTED, 1, "both ends know the secret")                                 \
    X(REFUSED, 2, "one end has not proved that it knows the secret of the job") \
    X(OTHER_VERSION, 3, "the other end has another version")                    \
    X(OTHER_BYTE_ORDER, 4, "the other end has another byte order")              \
    X(FULL, 5, "the server takes no more connections")                          \
    X(STRANGER, 6, "the other end does not speak this protocol")                \
    X(LATE, 7, "the deadline passed")                                           \
    X(CLOSED, 8, "the other end closed the connection")

typedef enum spc_handshake_outcome {
#define SPC_HANDSHAKE_ENUM(name, number, meaning) SPC_HANDSHAKE_##name = (number),
    SPC_HANDSHAKE_OUTCOMES(SPC_HANDSHAKE_ENUM)
#undef SPC_HANDSHAKE_ENUM
} spc_handshake_outcome_t;

typedef enum spc_handshake_role { SPC_HANDSHAKE_CLIENT, SPC_HANDSHAKE_SERVER } spc_handshake_role_t;

typedef enum spc_handshake_byte_order {
    SPC_HANDSHAKE_LITTLE_ENDIAN = 1,
    SPC_HANDSHAKE_BIG_ENDIAN = 2,
} spc_handshake_byte_order_t;

/* A field that is 0 takes the value in brackets. */
typedef struct spc_handshake_options {
    spc_handshake_role_t role;
    uint32_t version;   /* [SPC_HANDSHAKE_VERSION] */
    uint8_t byte_order; /* [this machine's] */
    bool full;          /* server: answer every HELLO by FULL */
    bool encrypted;     /* the connection crosses a network, as this end sees it */
    uint32_t job;       /* client */
    uint16_t box;       /* client */
    unsigned char
        nonce[SPC_HANDSHAKE_NONCE_BYTES]; /* random, for this connection alone; from a good source */
    uint64_t timeout_ns; /* [SPC_HANDSHAKE_TIMEOUT_NS] */
} spc_handshake_options_t;

typedef struct spc_handshake spc_handshake_t;

/* SPC_EINVAL: a role or byte order that does not exist, a client that is full, a nonce of zeros; SPC_ENOMEM. Times are
 * those of any clock that does not go back. */
int spc_handshake_create(const spc_handshake_options_t *options, uint64_t now_ns,
                         spc_handshake_t **handshake);
void spc_handshake_destroy(spc_handshake_t *handshake); /* NULL is allowed */

typedef enum spc_handshake_step {
    SPC_HANDSHAKE_READ,  /* wait for bytes: spc_handshake_feed, or spc_handshake_closed */
    SPC_HANDSHAKE_WRITE, /* send spc_handshake_output, then spc_handshake_sent */
    SPC_HANDSHAKE_SIGN,  /* make the MAC of spc_handshake_to_sign, then spc_handshake_sign */
    SPC_HANDSHAKE_OVER,  /* spc_handshake_outcome */
} spc_handshake_step_t;

/* The next action. From the deadline on: SPC_HANDSHAKE_OVER. */
spc_handshake_step_t spc_handshake_step(spc_handshake_t *handshake, uint64_t now_ns);
uint64_t spc_handshake_deadline_ns(const spc_handshake_t *handshake);

/* ---- READ */

/* Number of bytes missing from the awaited message; 0 if none is awaited. */
size_t spc_handshake_wants(const spc_handshake_t *handshake);

/* Takes bytes from the other end, spc_handshake_wants at most. SPC_EINVAL, and it is over: there were more, or it was
 * not the other end's turn. SPC_ETIMEDOUT: the deadline passed. Otherwise SPC_OK, whatever the bytes were: ask for the
 * step. */
int spc_handshake_feed(spc_handshake_t *handshake, uint64_t now_ns, const void *bytes, size_t length_bytes);

/* The other end has closed the connection, or it broke. */
void spc_handshake_closed(spc_handshake_t *handshake);

/* ---- WRITE */

/* The bytes still to be sent; returns their number. */
size_t spc_handshake_output(const spc_handshake_t *handshake, const unsigned char **bytes);

/* Reports that this many of them have been sent. SPC_EINVAL: more than there are. */
int spc_handshake_sent(spc_handshake_t *handshake, size_t length_bytes);

/* ---- SIGN */

/* The SPC_HANDSHAKE_SIGNED_BYTES bytes; NULL if nothing is to be signed now. */
const unsigned char *spc_handshake_to_sign(const spc_handshake_t *handshake);

/* Takes their HMAC-SHA-256 under the secret of spc_handshake_peer's box; NULL: there is no such job, or no such box in
 * it, and the other end cannot distinguish that from a wrong secret. SPC_EINVAL: nothing is to be signed now. */
int spc_handshake_sign(spc_handshake_t *handshake, const unsigned char mac[SPC_HANDSHAKE_MAC_BYTES]);

/* ---- results */

/* OPEN until the step is OVER. */
spc_handshake_outcome_t spc_handshake_outcome(const spc_handshake_t *handshake);

/* The other end's declarations: on a server from its HELLO on. Trust them only if it is accepted. */
typedef struct spc_handshake_peer {
    uint32_t version; /* 0: it has declared nothing yet */
    uint8_t byte_order;
    uint32_t job;
    uint16_t box;
    bool encrypted; /* one of the ends declares that the connection crosses a network */
} spc_handshake_peer_t;

void spc_handshake_peer(const spc_handshake_t *handshake, spc_handshake_peer_t *peer);

#endif
