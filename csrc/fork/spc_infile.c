/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "fork/spc_infile.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/spc_error.h"

#define SPC_KEYS "allowed are local_nodes, total_nodes, group_id, ranks, server, code and timeout"
#define SPC_NUMBERS "a number is 0 to 2147483647"

/* Numbers first, then strings, then the list. */
enum { SPC_KEY_STRINGS = 4, SPC_KEY_RANKS = 6, SPC_KEY_COUNT = 7 };
static const char *const key_names[SPC_KEY_COUNT] = {"local_nodes", "total_nodes", "group_id", "timeout",
                                                     "server",      "code",        "ranks"};

/* The text being read, and where a complaint goes. */
typedef struct reader {
    const char *path;
    const char *at, *end;
    uint32_t line;
    char *message;
    uint64_t message_bytes;
} reader_t;

/* TOML allows no control characters but tabs, neither in strings nor in comments. */
static bool is_control(char c) {
    return ((unsigned char)c < 0x20 && c != '\t') || c == 0x7f;
}

static bool message_holds(const reader_t *reader, const char *at) {
    return (uint64_t)(at - reader->message) < reader->message_bytes && *at != '\0';
}

/* Always SPC_EINVAL. A long path is shown by its end. */
__attribute__((format(printf, 3, 4))) static int complain(const reader_t *reader, uint32_t line,
                                                          const char *text, ...) {
    uint64_t length = strlen(reader->path);
    bool cut = length > 300;
    char where[16] = "";
    if (line != 0) {
        snprintf(where, sizeof where, ":%u", line);
    }
    int start = snprintf(reader->message, reader->message_bytes, "%s%s%s: ", cut ? "..." : "",
                         reader->path + (cut ? length - 300 : 0), where);
    if (start > 0 && (uint64_t)start < reader->message_bytes) {
        va_list arguments;
        va_start(arguments, text);
        vsnprintf(reader->message + start, reader->message_bytes - (uint64_t)start, text, arguments);
        va_end(arguments);
    }
    for (char *at = reader->message; message_holds(reader, at); at++) {
        *at = is_control(*at) ? '?' : *at; /* a path or a key may have any */
    }
    return SPC_EINVAL;
}

/* ---- characters */

static bool is_at_end(const reader_t *reader) {
    return reader->at == reader->end;
}

static char peek(const reader_t *reader) {
    return is_at_end(reader) ? '\n' : *reader->at;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_bare(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
}

static bool is_line_end(const reader_t *reader) {
    return peek(reader) == '\n'
           || (peek(reader) == '\r' && reader->at + 1 < reader->end && reader->at[1] == '\n');
}

static void skip_blanks(reader_t *reader) {
    while (!is_at_end(reader) && (*reader->at == ' ' || *reader->at == '\t')) {
        reader->at++;
    }
}

/* Copies the text at this place for a sentence: up to a blank or a mark, readable, bounded. */
static const char *found(const reader_t *reader, char *buffer, uint32_t bytes) {
    uint32_t length = 0;
    const char *at = reader->at;
    if (is_line_end(reader) || *at == '#') {
        return "nothing";
    }
    while (at < reader->end && length + 2 < bytes && !is_control(*at) && *at != ' ' && *at != '\t'
           && *at != '#') {
        buffer[length++] = *at++;
    }
    while (length > 0 && at < reader->end && ((unsigned char)*at & 0xc0) == 0x80) {
        at--; /* not in the middle of a character */
        length--;
    }
    if (length == 0) {
        snprintf(buffer, bytes, "the character 0x%02x", (unsigned char)*reader->at);
        return buffer;
    }
    buffer[length] = '\0';
    return buffer;
}

/* The length of the UTF-8 sequence at `at`, 0 if it is none. */
static uint32_t utf8_length(const unsigned char *at, const unsigned char *end) {
    unsigned char first = *at;
    uint32_t length = first < 0x80 ? 1 : first >= 0xc2 && first < 0xe0 ? 2 : (first & 0xf0) == 0xe0 ? 3 : 4;
    if (length == 1) {
        return 1;
    }
    if ((length == 2 && first < 0xc2) || first < 0xc2 || first > 0xf4 || end - at < (ptrdiff_t)length) {
        return 0;
    }
    for (uint32_t i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    bool overlong = (first == 0xe0 && at[1] < 0xa0) || (first == 0xf0 && at[1] < 0x90);
    bool beyond = (first == 0xed && at[1] >= 0xa0) || (first == 0xf4 && at[1] >= 0x90);
    return overlong || beyond ? 0 : length;
}

/* ---- strings */

/* "basic" or 'literal', on one line. */
static int read_string(reader_t *reader, char *out, uint32_t room) {
    char quote = *reader->at++;
    uint32_t length = 0;
    if (reader->end - reader->at >= 2 && reader->at[0] == quote && reader->at[1] == quote) {
        return complain(reader, reader->line, "a string of several lines; allowed are \"...\" and '...'");
    }
    while (peek(reader) != quote) {
        if (is_line_end(reader)) {
            return complain(reader, reader->line, "a string without its closing %c", quote);
        }
        if (is_control(*reader->at)) {
            return complain(reader, reader->line, "the character 0x%02x in a string; strings hold text only",
                            (unsigned char)*reader->at);
        }
        if (*reader->at == '\\' && quote == '"') {
            return complain(reader, reader->line,
                            "a backslash in double quotes; use single quotes, where it stands for itself");
        }
        if (length + 1 >= room) {
            return complain(reader, reader->line, "a string of %u bytes or more; allowed are up to %u", room,
                            room - 1);
        }
        out[length++] = *reader->at++;
    }
    reader->at++;
    out[length] = '\0';
    return SPC_OK;
}

/* ---- key = value */

static int wrong_number(const reader_t *reader, const char *key) {
    char buffer[64];
    return complain(reader, reader->line, "%s = %s; " SPC_NUMBERS, key, found(reader, buffer, sizeof buffer));
}

/* Reads digits with single underscores between them, then the end of the line or one of `ends`. Leaves the reader at
 * the start if it finds anything else. */
static int read_number(reader_t *reader, const char *key, const char *ends, int32_t *number) {
    const char *start = reader->at;
    uint64_t value = 0;
    bool ok = true;
    if (peek(reader) == '+' || peek(reader) == '-') {
        reader->at++;
    }
    const char *first = reader->at;
    for (; is_digit(peek(reader)) || peek(reader) == '_'; reader->at++) {
        if (*reader->at == '_') {
            ok = ok && reader->at > first && is_digit(reader->at[-1]) && reader->at + 1 < reader->end
                 && is_digit(reader->at[1]);
        } else {
            value = value > INT32_MAX ? value : 10 * value + (uint64_t)(*reader->at - '0');
        }
    }
    ok = ok && reader->at > first && !(*first == '0' && reader->at > first + 1);
    ok = ok && (is_line_end(reader) || strchr(ends, peek(reader)) != NULL);
    if (!ok || value > INT32_MAX || (*start == '-' && value != 0)) {
        reader->at = start;
        return wrong_number(reader, key);
    }
    *number = (int32_t)value;
    return SPC_OK;
}

static int read_key(reader_t *reader, char *key, uint32_t room) {
    char buffer[64];
    if (peek(reader) == '"' || peek(reader) == '\'') {
        return read_string(reader, key, room);
    }
    uint32_t length = 0;
    while (is_bare(peek(reader)) && length + 1 < room) {
        key[length++] = *reader->at++;
    }
    key[length] = '\0';
    if (length == 0 && peek(reader) == '[') {
        return complain(reader, reader->line, "%s; tables are not allowed here, only key = value",
                        found(reader, buffer, sizeof buffer));
    }
    if (length == 0) {
        return complain(reader, reader->line, "%s where a key should be; " SPC_KEYS,
                        found(reader, buffer, sizeof buffer));
    }
    return SPC_OK;
}

static int add_rank(reader_t *reader, spc_infile_t *infile) {
    int32_t rank;
    int status = read_number(reader, "ranks", " \t#,]", &rank);
    if (status != SPC_OK) {
        return status;
    }
    for (uint32_t i = 0; i < infile->rank_count; i++) {
        if (infile->ranks[i] == rank) {
            return complain(reader, reader->line, "ranks has %d twice; each node has a rank of its own",
                            rank);
        }
    }
    if (infile->rank_count == SPC_INFILE_RANKS) {
        return complain(reader, reader->line, "ranks has more than %d numbers, and a run no more nodes",
                        SPC_INFILE_RANKS);
    }
    infile->ranks[infile->rank_count++] = rank;
    return SPC_OK;
}

/* [0, 1, 3], on one line. */
static int read_ranks(reader_t *reader, spc_infile_t *infile) {
    char buffer[64];
    if (peek(reader) != '[') {
        return complain(reader, reader->line, "ranks = %s; it is a list, as in [0, 1, 3]",
                        found(reader, buffer, sizeof buffer));
    }
    reader->at++;
    skip_blanks(reader);
    while (peek(reader) != ']') {
        int status = add_rank(reader, infile);
        if (status != SPC_OK) {
            return status;
        }
        skip_blanks(reader);
        if (peek(reader) == ',') {
            reader->at++;
            skip_blanks(reader);
        } else if (peek(reader) != ']') {
            return complain(reader, reader->line, "%s in ranks; a list is [0, 1, 3], on one line",
                            found(reader, buffer, sizeof buffer));
        }
    }
    reader->at++;
    return SPC_OK;
}

static int read_value(reader_t *reader, uint32_t which, const char *key, spc_infile_t *infile) {
    int32_t *numbers[] = {&infile->local_nodes, &infile->total_nodes, &infile->group_id, &infile->timeout_s};
    char *strings[] = {infile->server, infile->code};
    char buffer[64];
    if (which == SPC_KEY_RANKS) {
        return read_ranks(reader, infile);
    }
    if (which < SPC_KEY_STRINGS) {
        return read_number(reader, key, " \t#", numbers[which]);
    }
    if (peek(reader) != '"' && peek(reader) != '\'') {
        return complain(reader, reader->line, "%s = %s; it is a string, in quotes", key,
                        found(reader, buffer, sizeof buffer));
    }
    return read_string(reader, strings[which - SPC_KEY_STRINGS], SPC_INFILE_STRING_BYTES);
}

/* Blanks and a comment, up to the next line. */
static int end_line(reader_t *reader, const char *after) {
    char buffer[64];
    skip_blanks(reader);
    if (peek(reader) == '#') {
        while (!is_line_end(reader)) {
            if (is_control(*reader->at)) {
                return complain(reader, reader->line,
                                "the character 0x%02x in a comment; it is for text only",
                                (unsigned char)*reader->at);
            }
            reader->at++;
        }
    }
    if (!is_line_end(reader)) {
        return complain(reader, reader->line, "%s after %s; allowed is one key = value on a line",
                        found(reader, buffer, sizeof buffer), after);
    }
    reader->at += is_at_end(reader) ? 0 : *reader->at == '\r' ? 2 : 1;
    reader->line++;
    return SPC_OK;
}

static int read_line(reader_t *reader, spc_infile_t *infile, uint32_t *lines) {
    char key[64], buffer[64];
    uint32_t which = 0;
    skip_blanks(reader);
    if (is_line_end(reader) || peek(reader) == '#') {
        return end_line(reader, "");
    }
    int status = read_key(reader, key, sizeof key);
    if (status != SPC_OK) {
        return status;
    }
    while (which < SPC_KEY_COUNT && strcmp(key, key_names[which]) != 0) {
        which++;
    }
    if (which == SPC_KEY_COUNT) {
        return complain(reader, reader->line, "there is no key %s; " SPC_KEYS, key[0] != '\0' ? key : "\"\"");
    }
    skip_blanks(reader);
    if (peek(reader) != '=') {
        return complain(reader, reader->line, "%s after %s; a key is followed by = and its value",
                        found(reader, buffer, sizeof buffer), key);
    }
    if (lines[which] != 0) {
        return complain(reader, reader->line, "%s stands here again, after line %u; once is allowed", key,
                        lines[which]);
    }
    lines[which] = reader->line;
    reader->at++;
    skip_blanks(reader);
    status = read_value(reader, which, key, infile);
    return status == SPC_OK ? end_line(reader, "the value") : status;
}

/* ---- the file */

static int check_text(reader_t *reader) {
    const unsigned char *at = (const unsigned char *)reader->at, *end = (const unsigned char *)reader->end;
    uint32_t line = 1;
    while (at < end) {
        uint32_t length = utf8_length(at, end);
        if (length == 0 || *at == '\0') {
            return complain(reader, line, "the byte 0x%02x; a text in UTF-8 is allowed", *at);
        }
        line += *at == '\n';
        at += length;
    }
    return SPC_OK;
}

static int read_text(reader_t *reader, spc_infile_t *infile) {
    uint32_t lines[SPC_KEY_COUNT] = {0};
    int status = check_text(reader);
    while (status == SPC_OK && !is_at_end(reader)) {
        status = read_line(reader, infile, lines);
    }
    return status;
}

static int cannot_read(const reader_t *reader, int error) {
    complain(reader, 0, "cannot be read: %s", strerror(error));
    errno = error;
    return SPC_ESYSTEM;
}

int spc_infile_read(const char *path, spc_infile_t *infile, char *message, uint64_t message_bytes) {
    reader_t reader = {.path = path, .line = 1, .message = message, .message_bytes = message_bytes};
    memset(infile, 0, sizeof(*infile));
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return cannot_read(&reader, errno);
    }
    char *text = malloc(SPC_INFILE_MAX_BYTES + 1);
    uint64_t bytes = text != NULL ? fread(text, 1, SPC_INFILE_MAX_BYTES + 1, file) : 0;
    int error = text == NULL ? ENOMEM : ferror(file) ? errno : 0;
    fclose(file);
    int status;
    if (error != 0) {
        status = cannot_read(&reader, error);
    } else if (bytes > SPC_INFILE_MAX_BYTES) {
        status = complain(&reader, 0, "it is larger than %d bytes; such a file has a few lines",
                          SPC_INFILE_MAX_BYTES);
    } else {
        reader.at = text;
        reader.end = text + bytes;
        status = read_text(&reader, infile);
    }
    free(text);
    if (status != SPC_OK) {
        memset(infile, 0, sizeof(*infile));
        errno = error;
    }
    return status;
}
