# SPDX-License-Identifier: MIT
"""Declarations for Cython that scripts/declarations.py makes of C headers."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
pytest.importorskip("pycparser")
from declarations import declarations

HEADER = """
# 1 "/usr/include/others.h"
typedef struct { int hidden; } other_t;
# 1 "csrc/one.h"
#define LIMIT 12
#define EVER UINT64_MAX
#define WORD "word"
#define LIST(X) X(1)
_Static_assert(sizeof(int) == 4, "text; with ) and {");
typedef struct opaque opaque_t;
typedef enum kind { KIND_A = 1, KIND_B, KIND_C = KIND_B << 2 } kind_t;
typedef struct item {
    const struct item *next;
    _Atomic uint64_t count;
    char name[KIND_C];
    uint8_t operator;
    struct { int lost; } nameless;
    int (*check)(void *argument, _Bool *found);
} item_t;
struct opaque { int64_t wide; };
typedef void row_t(const char *text);
static inline _Bool item_is(const item_t *item, opaque_t **all) { if (item) { return 1; } return 0; }
_Noreturn void item_end(void);
"""
DECLARED = [
    "ctypedef struct opaque_t:",
    "    int64_t wide",
    "ctypedef enum kind_t:",
    "    KIND_A",
    "    KIND_B",
    "    KIND_C",
    "ctypedef struct item_t:",
    "    const item_t *next",
    "    uint64_t count",
    "    char name[8]",
    '    uint8_t op "operator"',
    "    int (*check)(void *, spc_bool *) noexcept nogil",
    "ctypedef void row_t(const char *) noexcept nogil",
    "spc_bool item_is(const item_t *, opaque_t **)",
    "void item_end()",
    "enum:",
    "    LIMIT",
    "uint64_t EVER",
    "const char *WORD",
]


def test_names_have_the_types_of_the_header():
    text = declarations("one.h", HEADER)
    head, _, body = text.partition('cdef extern from "one.h" nogil:\n')
    assert "from libc.stdint cimport" in head and "spc_bool" in head
    assert [line.removeprefix("    ") for line in body.splitlines()] == DECLARED
