/* SPDX-License-Identifier: MIT */
/*
 * corpus: a target without libFuzzer: each file that is named, and of each some copies that are changed a little.
 * The changes are the same in every run. FUZZ_CHANGES says how many copies: 200 of each.
 */
#include "fuzz.h"

enum { LONGEST = 1 << 16 };

/* One to four changes of single bytes, or of the length. */
static size_t change(unsigned char *bytes, size_t length_bytes, uint64_t *random) {
    for (uint64_t left = 1 + next_random(random) % 4; left > 0 && length_bytes > 0; left--) {
        size_t at = next_random(random) % length_bytes;
        uint64_t how = next_random(random) % 8;
        if (how == 0) {
            length_bytes = at;
        } else if (how == 1 && length_bytes < LONGEST) {
            memmove(bytes + at + 1, bytes + at, length_bytes++ - at);
        } else if (how < 5) {
            bytes[at] ^= (unsigned char)(1 << next_random(random) % 8);
        } else {
            bytes[at] = (unsigned char)next_random(random);
        }
    }
    return length_bytes;
}

static void run_exactly(const unsigned char *bytes, size_t length_bytes) {
    unsigned char *copy = exactly(bytes, length_bytes);
    LLVMFuzzerTestOneInput(copy, length_bytes);
    free(copy);
}

static void run_file(const char *name, long changes) {
    static unsigned char bytes[LONGEST], changed[LONGEST];
    FILE *file = fopen(name, "rb");
    MUST(file != NULL);
    size_t length_bytes = fread(bytes, 1, sizeof bytes, file);
    MUST(fclose(file) == 0);
    uint64_t random = length_bytes;
    run_exactly(bytes, length_bytes);
    while (changes-- > 0) {
        memcpy(changed, bytes, length_bytes);
        run_exactly(changed, change(changed, length_bytes, &random));
    }
}

int main(int count, char **names) {
    const char *changes = getenv("FUZZ_CHANGES");
    for (int i = 1; i < count; i++) {
        fprintf(stderr, "%s\n", names[i]); /* the last one is it, if a sanitizer speaks */
        run_file(names[i], changes != NULL ? strtol(changes, NULL, 10) : 200);
    }
    printf("%d files\n", count - 1);
    return 0;
}
