/* SPDX-License-Identifier: MIT */
/* A token goes round: each node adds itself to it and passes it on. The paper's functions, as they are printed there.
 *
 *     c++ -O2 token_ring.cpp $(spcomm config --cflags --libs) -o token_ring && spcomm run -n 4 ./token_ring
 */
#include <cstdio>

#include <spcomm/speedescomm.hpp>

enum { TOKEN = 1, ROUNDS = 3 };

struct Token {
    int passes;
    long sum;
};

/* SpComm_Receive does not wait: it returns NULL when nothing has come. */
static Token WaitForToken() {
    int nbytes;
    void *message;
    do {
        message = SpComm_Receive(TOKEN, nbytes);
    } while (message == NULL);
    Token token = *static_cast<Token *>(message);
    delete[] static_cast<char *>(message); /* what a receive returns was made by new char[] */
    return token;
}

int main() {
    SpComm_StartUp(0, 0, 0, NULL);
    const int node = SpComm_GetNodeId(), nodes = SpComm_GetNumNodes();

    Token token = {0, 0};
    for (int round = 0; round < ROUNDS; round++) {
        if (node != 0 || round > 0) {
            token = WaitForToken();
        }
        token.passes++;
        token.sum += node;
        SpComm_Send((node + 1) % nodes, TOKEN, sizeof(token), &token);
    }
    const int latest = SpComm_GlobalMax(token.passes); /* of the last node, in the last round */
    if (node == 0) {
        token = WaitForToken();
        std::printf("the token has been passed on %d times by %d nodes, and carries %ld\n", latest, nodes,
                    token.sum);
    }
    const bool right =
        latest == ROUNDS * nodes && (node != 0 || token.sum == ROUNDS * long(nodes) * (nodes - 1) / 2);
    SpComm_ShutDown();
    return right ? 0 : 2;
}
