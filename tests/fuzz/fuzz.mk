# SPDX-License-Identifier: MIT
# The fuzz targets; only the corpus needs Python. From the top of the checkout:
#
#   make -f tests/fuzz/fuzz.mk corpus                 compile each target to run files, and write them: build/fuzz
#   make -f tests/fuzz/fuzz.mk fuzzers                compile each with libFuzzer: build/fuzz/fuzz_<noun>; needs clang
#   make -f tests/fuzz/fuzz.mk fuzz FUZZ_SECONDS=20   so long for each target; what was found: build/fuzz/found
#   make -f tests/fuzz/fuzz.mk merge                  take what reaches new code into the corpus: found.txt
#
# A target is tests/fuzz/fuzz_<noun>.c, its corpus the folder build/fuzz/corpus/<noun>.

OUT ?= build/fuzz
FUZZ_SECONDS ?= 20
FUZZ_CC ?= clang

TARGETS := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
# The sources that the targets test, and those that these need.
CORE := csrc/base/spc_error.c $(addprefix csrc/net/wire/,spc_arrival.c spc_crc32c.c spc_frame.c) \
        csrc/reduce/spc_ops.c csrc/reduce/spc_subtree.c
HEADERS := $(wildcard tests/fuzz/*.h csrc/net/wire/*.h csrc/reduce/*.h csrc/base/*.h)

FLAGS := -std=c11 -D_GNU_SOURCE -g -O1 -Wall -Wextra -Werror -Icsrc -Icsrc/include -Itests/fuzz
SANITIZE := -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
# Not every compiler has the sanitizers' libraries.
SANITIZED := $(shell mkdir -p $(OUT) && echo 'int main(void) { return 0; }' | \
               $(CC) $(SANITIZE) -x c - -o $(OUT)/probe 2>/dev/null && echo yes)

.PHONY: corpus fuzzers fuzz merge
.SECONDARY:

corpus: $(TARGETS:%=$(OUT)/corpus_%) $(OUT)/corpus
fuzzers: $(TARGETS:%=$(OUT)/fuzz_%) $(OUT)/corpus

$(OUT)/corpus: tests/fuzz/seeds.py tests/fuzz/found.txt tests/entries.py
	@"$$(scripts/find-python)" tests/fuzz/seeds.py $@

# All targets share the objects of the core.
$(OUT)/corpus_%: $(patsubst %.c,$(OUT)/%.o,tests/fuzz/fuzz_%.c tests/fuzz/corpus.c $(CORE))
	@echo "  link  $@"
	@$(CC) $(if $(SANITIZED),$(SANITIZE)) -o $@ $^

$(OUT)/%.o: %.c $(HEADERS) tests/fuzz/fuzz.mk
	@mkdir -p $(@D)
	@echo "  cc    $@"
	@$(CC) $(FLAGS) $(if $(SANITIZED),$(SANITIZE)) $(CFLAGS) -c -o $@ $<

$(OUT)/fuzz_%: tests/fuzz/fuzz_%.c $(CORE) $(HEADERS) tests/fuzz/fuzz.mk
	@echo "  $(FUZZ_CC)  $@"
	@$(FUZZ_CC) $(FLAGS) $(SANITIZE) -fsanitize=fuzzer $(CFLAGS) -o $@ $(filter %.c,$^)

# One after the other, each until its time is over or it has found something wrong.
fuzz: fuzzers
	@failed=0; for noun in $(TARGETS); do \
	  mkdir -p $(OUT)/found/$$noun; echo "==== $$noun, $(FUZZ_SECONDS) s"; \
	  $(OUT)/fuzz_$$noun -max_total_time=$(FUZZ_SECONDS) -max_len=2000 -timeout=10 -print_final_stats=1 -verbosity=0 \
	    -artifact_prefix=$(OUT)/wrong-$$noun- $(OUT)/found/$$noun $(OUT)/corpus/$$noun || failed=1; \
	done; exit $$failed

merge: fuzzers
	@for noun in $(TARGETS); do \
	  mkdir -p $(OUT)/found/$$noun; \
	  $(OUT)/fuzz_$$noun -merge=1 -use_counters=0 -max_len=2000 $(OUT)/corpus/$$noun $(OUT)/found/$$noun; \
	done
	@"$$(scripts/find-python)" tests/fuzz/seeds.py --keep $(OUT)/corpus
