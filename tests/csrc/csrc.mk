# SPDX-License-Identifier: MIT
# The C core and its tests in five builds. From the top of the checkout:
#
#   make -f tests/csrc/csrc.mk              compile all five builds into build/csrc
#   make -f tests/csrc/csrc.mk tsan         compile one: plain, asan, tsan, endless or posix
#   make -f tests/csrc/csrc.mk check-tsan   compile one and run its programs
#
# A test is one program, tests/csrc/test_<noun>.c: exit status 0 means passed, 77 skipped (see check.h).
# Under `make test` pytest runs them: tests/csrc/test_programs.py.

OUT ?= build/csrc
VARIANTS := plain asan tsan endless posix

# The library of the package, as `make build` made it: only the tests themselves are compiled.
plain_FLAGS := -O1
plain_CORE := spcomm/lib/libspcomm.a
# AddressSanitizer with UndefinedBehaviorSanitizer; the first finding ends the program.
asan_FLAGS := -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
tsan_FLAGS := -O1 -fno-omit-frame-pointer -fsanitize=thread
# A wait sleeps without a time limit, so that a lost wake-up hangs the test instead of hiding.
endless_FLAGS := -O2 -DSPC_WAIT_ENDLESS_SLICES
# The code that systems other than Linux compile: every fallback, nothing else.
posix_FLAGS := -O2 -U__linux__

FLAGS := -std=c11 -D_GNU_SOURCE -g -pthread -Wall -Wextra -Werror -Icsrc -Icsrc/include -Itests/csrc
LIBS := -pthread -lm $(if $(filter Linux,$(shell uname -s)),-lrt)

# A test that puts itself between two files of the core: its __wrap_NAME is called instead of NAME.
LINK_test_outbox := -Wl,--wrap=spc_mailbox_writer_init
LINK_test_comm_hand_back := -Wl,--wrap=spc_trace_record_words
LINK_test_comm_numbers := -Wl,--wrap=spc_numbers_reserve
LINK_test_comm_block := -Wl,--wrap=spc_status_end
LINK_test_gateway := -Wl,--wrap=spc_status_end -Wl,--wrap=spc_receipt_is_given -Wl,--wrap=spc_link_queue
LINK_test_credit := -Wl,--wrap=spc_link_create
# The core's allocations, which shortage.h lets fail.
comma := ,
SHORTAGE := $(addprefix -Wl$(comma)--wrap=,malloc calloc realloc aligned_alloc strdup open_memstream fopen open \
              memfd_create mmap munmap pipe socket epoll_create1 fork pthread_create)
LINK_test_shortage := $(SHORTAGE)
LINK_test_shortage_program := $(SHORTAGE)
LINK_test_shortage_boxes := $(SHORTAGE)

CORE := $(shell find csrc -name '*.c' -not -path 'csrc/mpi/*')
# Code that several tests share is in other files than test_*.c, and linked to every program.
SHARED := $(filter-out $(wildcard tests/csrc/test_*.c),$(wildcard tests/csrc/*.c))
TESTS := $(wildcard tests/csrc/test_*.c)

# Not every compiler has the sanitizers' libraries.
runs = $(shell mkdir -p $(OUT) && echo 'int main(void) { return 0; }' | \
         $(CC) $($(1)_FLAGS) -x c - -o $(OUT)/probe-$(1) 2>/dev/null && echo $(1))
SUPPORTED := $(foreach v,$(VARIANTS),$(call runs,$(v)))

.PHONY: all supported $(VARIANTS) $(VARIANTS:%=check-%)
.SECONDARY:

all: $(SUPPORTED)
	$(if $(filter-out $(SUPPORTED),$(VARIANTS)),@echo "skipped: $(CC) has no $(filter-out $(SUPPORTED),$(VARIANTS))")

supported:
	@echo $(SUPPORTED)

define variant
$(1): $(TESTS:%.c=$(OUT)/$(1)/%)

$(OUT)/$(1)/%.o: %.c tests/csrc/csrc.mk
	@mkdir -p $$(@D)
	@echo "  cc    $$@"
	@$$(CC) $(FLAGS) $($(1)_FLAGS) $$(CFLAGS) -MMD -MP -c -o $$@ $$<

$(OUT)/$(1)/tests/csrc/test_%: $(OUT)/$(1)/tests/csrc/test_%.o $(SHARED:%.c=$(OUT)/$(1)/%.o) $(or $($(1)_CORE),$(CORE:%.c=$(OUT)/$(1)/%.o))
	@echo "  link  $$@"
	@$$(CC) $($(1)_FLAGS) -o $$@ $$^ $(LIBS) $$(LINK_$$(@F))

check-$(1): $(1)
	@failed=0; for test in $(TESTS:%.c=$(OUT)/$(1)/%); do \
	  $$$$test; status=$$$$?; \
	  case $$$$status in \
	    0) echo "passed   $$$$test" ;; \
	    77) echo "skipped  $$$$test" ;; \
	    *) echo "FAILED   $$$$test (status $$$$status)"; failed=1 ;; \
	  esac; done; exit $$$$failed
endef

$(foreach v,$(VARIANTS),$(eval $(call variant,$(v))))

$(plain_CORE):
	@echo "$@ is missing: run make build first" >&2; exit 1

-include $(shell find $(OUT) -name '*.d' 2>/dev/null)
