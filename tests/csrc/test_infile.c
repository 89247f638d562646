/* SPDX-License-Identifier: MIT */
/* The infile: what is accepted and found, and the sentence for each thing that is wrong. */
#include "check.h"

#include <errno.h>

#include "base/spc_error.h"
#include "fork/spc_infile.h"

static char folder[] = P_tmpdir "/infile-XXXXXX";
static char path[sizeof folder + 10];

static int read_bytes(const char *text, size_t bytes, spc_infile_t *infile, char *message) {
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL);
    CHECK_EQ_U(fwrite(text, 1, bytes, file), bytes);
    CHECK_EQ(fclose(file), 0);
    memset(message, 'x', SPC_INFILE_MESSAGE_BYTES);
    return spc_infile_read(path, infile, message, SPC_INFILE_MESSAGE_BYTES);
}

/* `expected` is the sentence without the path. Nothing of the file is kept. */
static void refused(const char *text, const char *expected) {
    char message[SPC_INFILE_MESSAGE_BYTES], whole[SPC_INFILE_MESSAGE_BYTES];
    spc_infile_t found;
    CHECK_EQ(read_bytes(text, strlen(text), &found, message), SPC_EINVAL);
    snprintf(whole, sizeof whole, "%s%s", path, expected);
    CHECK_STR(message, whole);
    CHECK_EQ(found.local_nodes, 0);
    CHECK_STR(found.server, "");
}

#define NUMBERS "; a number is 0 to 2147483647"
#define KEYS "; allowed are local_nodes, total_nodes, group_id, ranks, server, code and timeout"

/* The lists and texts of a run over several machines. */
TEST(lists) {
    char message[SPC_INFILE_MESSAGE_BYTES];
    spc_infile_t found;
    const char *text = "ranks = [ 3,1 , 10, ]\ntimeout = 60\ncode = 'code.txt'\n";
    CHECK_OK(read_bytes(text, strlen(text), &found, message));
    CHECK_EQ_U(found.rank_count, 3);
    CHECK(found.ranks[0] == 3 && found.ranks[1] == 1 && found.ranks[2] == 10);
    CHECK_EQ(found.timeout_s, 60);
    CHECK_STR(found.code, "code.txt");
    refused("ranks = 3", ":1: ranks = 3; it is a list, as in [0, 1, 3]");
    refused("ranks = [1, 2, 1]", ":1: ranks has 1 twice; each node has a rank of its own");
    refused("ranks = [1 2]", ":1: 2] in ranks; a list is [0, 1, 3], on one line");
    refused("ranks = [1,\n2]", ":1: ranks = nothing" NUMBERS);
    refused("ranks = [1", ":1: nothing in ranks; a list is [0, 1, 3], on one line");
    refused("ranks = [,]", ":1: ranks = ,]" NUMBERS);
    refused("ranks = [1.5]", ":1: ranks = 1.5]" NUMBERS);
}

TEST(wrong_numbers) {
    static const char *const wrong[] = {"-1",   "1.5", "four", "\"4\"", "2147483648", "99999999999999999999",
                                        "0x10", "04",  "1_0",  "+1",    "1e3",        "true",
                                        "[4]",  "4,"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[80], expected[120];
        snprintf(text, sizeof text, "\nlocal_nodes = %s", wrong[i]);
        snprintf(expected, sizeof expected, ":2: local_nodes = %s" NUMBERS, wrong[i]);
        refused(text, expected);
    }
    refused("group_id =", ":1: group_id = nothing" NUMBERS);
    refused("group_id = # 4\n", ":1: group_id = nothing" NUMBERS);
}

TEST(wrong_lines) {
    refused("local_node = 4", ":1: there is no key local_node" KEYS);
    refused("'group_id' = 4", ":1: there is no key 'group_id'" KEYS);
    refused("= 4", ":1: there is no key " KEYS);
    refused("[run]\nlocal_nodes = 4", ":1: [run]; tables are not allowed here, only key = value");
    refused("local_nodes 4", ":1: 4 after local_nodes; a key is followed by = and its value");
    refused("server.name = 'x'", ":1: .name after server; a key is followed by = and its value");
    refused("local_nodes = 4 total_nodes = 4",
            ":1: total_nodes after the value; allowed is one key = value on a line");
    refused("group_id = 1\n\ngroup_id = 1", ":3: group_id stands here again, after line 1; once is allowed");
    refused("server = box", ":1: server = box; it is a string, in quotes");
    refused("server = 4", ":1: server = 4; it is a string, in quotes");
    refused("server = \"box", ":1: a string without its closing \"");
    refused("server = 'box\n'", ":1: a string without its closing '");
    refused("server = \"\"\"box\"\"\"",
            ":1: \"box\"\"\" after the value; allowed is one key = value on a line");
    refused("\nserver = \"a\\nb\"",
            ":2: a backslash in double quotes; use single quotes, where it stands for itself");
}

TEST(sizes) {
    char message[SPC_INFILE_MESSAGE_BYTES], text[SPC_INFILE_MAX_BYTES + 1],
        longest[SPC_INFILE_STRING_BYTES + 20];
    spc_infile_t found;
    CHECK_EQ(read_bytes("a\0b", 3, &found, message), SPC_EINVAL);
    CHECK(strstr(message, ": it has a byte of 0; a text is allowed") != NULL);
    memset(text, '\n', sizeof text);
    CHECK_OK(read_bytes(text, SPC_INFILE_MAX_BYTES, &found, message));
    CHECK_EQ(read_bytes(text, sizeof text, &found, message), SPC_EINVAL);
    CHECK(strstr(message, "larger than 65536 bytes") != NULL);
    snprintf(longest, sizeof longest, "server = '%0255d'", 0);
    CHECK_OK(read_bytes(longest, strlen(longest), &found, message));
    CHECK_EQ_U(strlen(found.server), 255);
    snprintf(longest, sizeof longest, "server = '%0256d'", 0);
    refused(longest, ":1: a string of 256 bytes or more; allowed are up to 255");
}

TEST(files_that_cannot_be_read) {
    char message[SPC_INFILE_MESSAGE_BYTES], missing[1000];
    spc_infile_t found;
    CHECK_EQ(spc_infile_read(folder, &found, message, sizeof message), SPC_ESYSTEM);
    CHECK_EQ(errno, EISDIR);
    CHECK(strstr(message, ": cannot be read: ") != NULL);
    memset(missing, 'm', sizeof missing - 1);
    missing[sizeof missing - 1] = '\0';
    CHECK_EQ(spc_infile_read(missing, &found, message, sizeof message), SPC_ESYSTEM);
    CHECK(strncmp(message, "...mmm", 6) == 0 && strstr(message, ": cannot be read: ") != NULL);
    for (uint64_t room = 0; room < 40; room++) { /* a short message is cut, and ends */
        memset(message, 'x', sizeof message);
        CHECK_EQ(spc_infile_read("nowhere", &found, message, room), SPC_ESYSTEM);
        CHECK(room == 0 || memchr(message, '\0', room) != NULL);
        CHECK(message[room] == 'x');
    }
}

/* Any bytes give values or a sentence; the sanitizers watch. */
TEST(random_texts) {
    static const char pieces[] =
        "local_nodes=total_nodesgroup_idserverranks,]\"'\\u#\r\n 0123456789_+-\xc3\xa9\xff[";
    char message[SPC_INFILE_MESSAGE_BYTES], text[64];
    uint64_t state = check_seed();
    spc_infile_t found;
    for (long i = 0; i < check_scale(4000); i++) {
        size_t length = check_below(&state, sizeof text);
        for (size_t at = 0; at < length; at++) {
            text[at] = pieces[check_below(&state, sizeof pieces - 1)];
        }
        size_t head = check_below(&state, 3) == 0 ? 0 : 14;
        if (length >= head) {
            memcpy(text, "local_nodes = ", head);
        }
        int status = read_bytes(text, length, &found, message);
        CHECK(status == SPC_OK || (status == SPC_EINVAL && strncmp(message, path, strlen(path)) == 0));
    }
}

int main(void) {
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/in.toml", folder);
    check_all();
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(rmdir(folder), 0);
    return check_done();
}
