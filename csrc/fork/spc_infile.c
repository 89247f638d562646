/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "fork/spc_infile.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/spc_error.h"

#define SPC_KEYS "allowed are local_nodes, total_nodes, group_id, ranks, server, code and timeout"

/* Numbers first, then strings, then the list. */
enum { SPC_KEY_STRINGS = 4, SPC_KEY_RANKS = 6, SPC_KEY_COUNT = 7 };
static const char *const key_names[SPC_KEY_COUNT] = {"local_nodes", "total_nodes", "group_id", "timeout",
                                                     "server",      "code",        "ranks"};

/* The line being read, and where a complaint goes. A line ends with '\0'. */
typedef struct reader {
    const char *path;
    const char *at;
    uint32_t line;
    char *message;
    uint64_t message_bytes;
} reader_t;

static bool message_holds(const reader_t *reader, const char *at) {
    return (uint64_t)(at - reader->message) < reader->message_bytes && *at != '\0';
}

/* Always SPC_EINVAL. A long path is shown by its end. */
__attribute__((format(printf, 2, 3))) static int complain(const reader_t *reader, const char *text, ...) {
    uint64_t length = strlen(reader->path);
    bool cut = length > 300;
    char where[16] = "";
    if (reader->line != 0) {
        snprintf(where, sizeof where, ":%u", reader->line);
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
        *at =
            ((unsigned char)*at < 0x20 && *at != '\t') || *at == 0x7f ? '?' : *at; /* of a path or the file */
    }
    return SPC_EINVAL;
}

static void skip_blanks(reader_t *reader) {
    reader->at += strspn(reader->at, " \t");
}

static bool is_line_end(const reader_t *reader) {
    return *reader->at == '\0' || *reader->at == '#';
}

/* The word at this place, for a sentence. */
static const char *found(const reader_t *reader, char buffer[64]) {
    if (is_line_end(reader)) {
        return "nothing";
    }
    snprintf(buffer, 64, "%.*s", (int)strcspn(reader->at, " \t#"), reader->at);
    return buffer;
}

/* Digits, then the end of the line or one of `ends`. */
static int read_number(reader_t *reader, const char *key, const char *ends, int32_t *number) {
    char buffer[64];
    const size_t digits = strspn(reader->at, "0123456789");
    const long long value = digits > 0 && digits <= 10 ? strtoll(reader->at, NULL, 10) : -1;
    const bool is_padded = digits > 1 && *reader->at == '0'; /* no number in TOML */
    if (value < 0 || value > INT32_MAX || is_padded || strchr(ends, reader->at[digits]) == NULL) {
        return complain(reader, "%s = %s; a number is 0 to 2147483647", key, found(reader, buffer));
    }
    *number = (int32_t)value;
    reader->at += digits;
    return SPC_OK;
}

/* "text" or 'text'. */
static int read_string(reader_t *reader, const char *key, char out[SPC_INFILE_STRING_BYTES]) {
    char buffer[64];
    const char quote = *reader->at;
    if (quote != '"' && quote != '\'') {
        return complain(reader, "%s = %s; it is a string, in quotes", key, found(reader, buffer));
    }
    const char *start = reader->at + 1, *end = strchr(start, quote);
    if (end == NULL) {
        return complain(reader, "a string without its closing %c", quote);
    }
    const size_t length = (size_t)(end - start);
    if (quote == '"' && memchr(start, '\\', length) != NULL) {
        return complain(reader,
                        "a backslash in double quotes; use single quotes, where it stands for itself");
    }
    if (length >= SPC_INFILE_STRING_BYTES) {
        return complain(reader, "a string of %d bytes or more; allowed are up to %d", SPC_INFILE_STRING_BYTES,
                        SPC_INFILE_STRING_BYTES - 1);
    }
    memcpy(out, start, length);
    out[length] = '\0';
    reader->at = end + 1;
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
            return complain(reader, "ranks has %d twice; each node has a rank of its own", rank);
        }
    }
    if (infile->rank_count == SPC_INFILE_RANKS) {
        return complain(reader, "ranks has more than %d numbers, and a run no more nodes", SPC_INFILE_RANKS);
    }
    infile->ranks[infile->rank_count++] = rank;
    return SPC_OK;
}

/* [0, 1, 3] */
static int read_ranks(reader_t *reader, spc_infile_t *infile) {
    char buffer[64];
    if (*reader->at != '[') {
        return complain(reader, "ranks = %s; it is a list, as in [0, 1, 3]", found(reader, buffer));
    }
    reader->at++;
    skip_blanks(reader);
    while (*reader->at != ']') {
        int status = add_rank(reader, infile);
        if (status != SPC_OK) {
            return status;
        }
        skip_blanks(reader);
        if (*reader->at == ',') {
            reader->at++;
            skip_blanks(reader);
        } else if (*reader->at != ']') {
            return complain(reader, "%s in ranks; a list is [0, 1, 3], on one line", found(reader, buffer));
        }
    }
    reader->at++;
    return SPC_OK;
}

static int read_value(reader_t *reader, uint32_t which, spc_infile_t *infile) {
    int32_t *numbers[] = {&infile->local_nodes, &infile->total_nodes, &infile->group_id, &infile->timeout_s};
    char *strings[] = {infile->server, infile->code};
    if (which == SPC_KEY_RANKS) {
        return read_ranks(reader, infile);
    }
    return which < SPC_KEY_STRINGS ? read_number(reader, key_names[which], " \t#", numbers[which])
                                   : read_string(reader, key_names[which], strings[which - SPC_KEY_STRINGS]);
}

static int read_line(reader_t *reader, spc_infile_t *infile, uint32_t lines[SPC_KEY_COUNT]) {
    char buffer[64];
    uint32_t which = 0;
    skip_blanks(reader);
    if (is_line_end(reader)) {
        return SPC_OK;
    }
    if (*reader->at == '[') {
        return complain(reader, "%s; tables are not allowed here, only key = value", found(reader, buffer));
    }
    const char *key = reader->at;
    const size_t length = strcspn(key, " \t#=.");
    while (which < SPC_KEY_COUNT
           && (strlen(key_names[which]) != length || memcmp(key, key_names[which], length) != 0)) {
        which++;
    }
    if (which == SPC_KEY_COUNT) {
        return complain(reader, "there is no key %.*s; " SPC_KEYS, length < 64 ? (int)length : 64, key);
    }
    reader->at += length;
    skip_blanks(reader);
    if (*reader->at != '=') {
        return complain(reader, "%s after %s; a key is followed by = and its value", found(reader, buffer),
                        key_names[which]);
    }
    if (lines[which] != 0) {
        return complain(reader, "%s stands here again, after line %u; once is allowed", key_names[which],
                        lines[which]);
    }
    lines[which] = reader->line;
    reader->at++;
    skip_blanks(reader);
    int status = read_value(reader, which, infile);
    if (status != SPC_OK) {
        return status;
    }
    skip_blanks(reader);
    return is_line_end(reader) ? SPC_OK
                               : complain(reader, "%s after the value; allowed is one key = value on a line",
                                          found(reader, buffer));
}

/* Ends each line with '\0'. */
static int read_text(reader_t *reader, char *text, spc_infile_t *infile) {
    uint32_t lines[SPC_KEY_COUNT] = {0};
    int status = SPC_OK;
    for (char *next = text; next != NULL && status == SPC_OK;) {
        reader->at = next;
        reader->line++;
        char *end = strchr(next, '\n');
        next = end != NULL ? end + 1 : NULL;
        if (end != NULL) {
            end -= end > reader->at && end[-1] == '\r';
            *end = '\0';
        }
        status = read_line(reader, infile, lines);
    }
    return status;
}

static int cannot_read(const reader_t *reader, int error) {
    complain(reader, "cannot be read: %s", strerror(error));
    errno = error;
    return SPC_ESYSTEM;
}

int spc_infile_read(const char *path, spc_infile_t *infile, char *message, uint64_t message_bytes) {
    reader_t reader = {.path = path, .message = message, .message_bytes = message_bytes};
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
        status = complain(&reader, "it is larger than %d bytes; such a file has a few lines",
                          SPC_INFILE_MAX_BYTES);
    } else if (memchr(text, '\0', bytes) != NULL) {
        status = complain(&reader, "it has a byte of 0; a text is allowed");
    } else {
        text[bytes] = '\0';
        status = read_text(&reader, text, infile);
    }
    free(text);
    if (status != SPC_OK) {
        memset(infile, 0, sizeof(*infile));
        errno = error;
    }
    return status;
}
