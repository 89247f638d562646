/* SPDX-License-Identifier: MIT */
/* Notes that a node leaves: whole ones only, rows of equal messages together. */
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "segment/spc_note.h"

static spc_note_shared_t *notes;

static void reset(void) {
    memset(notes, 0, sizeof(*notes));
}

TEST(nothing_at_first) {
    spc_note_t note;
    reset();
    for (int kind = 0; kind < SPC_NOTE_KINDS; kind++) {
        CHECK(!spc_note_read(notes, (spc_note_kind_t)kind, &note));
    }
    CHECK(!spc_note_has_any(notes) && !spc_note_is_settled(notes));
}

TEST(reads_what_was_written) {
    spc_note_t written = {.key = 7, .count = 2, .line = 12, .words = "close()", .file = "/a/b.py"};
    spc_note_t note;
    reset();
    spc_note_write(notes, SPC_NOTE_FUZZY, &written);
    CHECK(spc_note_read(notes, SPC_NOTE_FUZZY, &note) && memcmp(&note, &written, sizeof(note)) == 0);
    CHECK(!spc_note_read(notes, SPC_NOTE_CYCLE, &note) && spc_note_has_any(notes));
    memset(written.file, 'x', sizeof(written.file)); /* without an end */
    spc_note_write(notes, SPC_NOTE_FUZZY, &written);
    CHECK(spc_note_read(notes, SPC_NOTE_FUZZY, &note) && strlen(note.file) == sizeof(note.file) - 1);
}

TEST(each_open_operation_counts) {
    const spc_note_t written = {.count = 1};
    for (spc_note_kind_t kind = 0; kind < SPC_NOTE_KINDS; kind++) {
        reset();
        spc_note_write(notes, kind, &written);
        CHECK(spc_note_has_any(notes) == (kind >= SPC_NOTE_FUZZY));
    }
}

TEST(equal_messages_share_a_row) {
    reset();
    spc_note_add_left(NULL, 0, 1, 2, 0);
    for (int i = 0; i < 5; i++) {
        spc_note_add_left(notes, 0, 1, i % 2, 0);
    }
    CHECK(notes->left_count == 2 && notes->left[0].count == 3 && notes->left[1].count == 2);
    spc_note_add_left(notes, 0, 1, 0, 4);
    spc_note_add_left(notes, 1, 1, 0, 0);
    spc_note_add_left(notes, 0, 2, 0, 0);
    CHECK(notes->left_count == 5 && notes->left_more == 0);
    for (int i = 0; i < 100; i++) {
        spc_note_add_left(notes, 9, 1, 100 + i, 0);
    }
    CHECK(notes->left_count == SPC_NOTE_LEFT_MAX && notes->left_more == 100 - (SPC_NOTE_LEFT_MAX - 5));
}

TEST(only_so_many_places) {
    spc_note_sent_t sent = {.destination = 1, .line = 3};
    reset();
    for (int i = 0; i < 2 * SPC_NOTE_LEFT_MAX; i++) {
        sent.tag = i;
        spc_note_add_sent(notes, &sent);
    }
    CHECK(notes->sent_count == SPC_NOTE_LEFT_MAX
          && notes->sent[SPC_NOTE_LEFT_MAX - 1].tag == SPC_NOTE_LEFT_MAX - 1);
}

TEST(the_last_place_is_found) {
    spc_note_sent_t sent = {.destination = 1, .tag = 5, .format = 0x49}, found;
    reset();
    CHECK(!spc_note_find_sent(notes, 1, 5, 0x49, &found));
    for (sent.line = 3; sent.line < 6; sent.line++) {
        spc_note_add_sent(notes, &sent);
    }
    CHECK(spc_note_find_sent(notes, 1, 5, 0x49, &found) && found.line == 5);
    CHECK(!spc_note_find_sent(notes, 1, 6, 0x49, &found) && !spc_note_find_sent(notes, 2, 5, 0x49, &found)
          && !spc_note_find_sent(notes, 1, 5, 0, &found));
    spc_note_forget_sent(notes);
    CHECK(!spc_note_find_sent(notes, 1, 5, 0x49, &found));
}

static void *write_many(void *argument) {
    (void)argument;
    for (uint32_t i = 1; i <= 20000; i++) {
        spc_note_t note;
        memset(&note, (int)(i % 100), sizeof(note));
        spc_note_write(notes, SPC_NOTE_CALL, &note);
    }
    return NULL;
}

TEST(readers_see_whole_notes) {
    pthread_t writer;
    spc_note_t note;
    reset();
    CHECK(pthread_create(&writer, NULL, write_many, NULL) == 0);
    for (int i = 0; i < 20000; i++) {
        if (spc_note_read(notes, SPC_NOTE_CALL, &note)) {
            const unsigned char *bytes = (const unsigned char *)&note;
            CHECK(memcmp(bytes, bytes + 1, offsetof(spc_note_t, words) + SPC_NOTE_WORDS_BYTES - 2) == 0);
        }
    }
    pthread_join(writer, NULL);
    CHECK(spc_note_read(notes, SPC_NOTE_CALL, &note) && note.line == 0);
}

int main(void) {
    notes = calloc(1, sizeof(*notes));
    CHECK(notes != NULL);
    check_all();
    free(notes);
    return check_done();
}
