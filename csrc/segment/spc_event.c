/* SPDX-License-Identifier: MIT */
#include "segment/spc_event.h"

void spc_event_raise(spc_event_shared_t *event, uint32_t features) {
    /* Pairs with the sleeper's load of the word before its second test: a sleeper that read the old word does not
     * fall asleep on the new one. */
    atomic_fetch_add_explicit(&event->word, 1, memory_order_seq_cst);
    spc_platform_wake(features, &event->word);
}
