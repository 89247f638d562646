/* SPDX-License-Identifier: MIT */
#include "segment/spc_event.h"

void spc_event_raise(spc_event_shared_t *event, uint32_t features) {
    /* Pairs with the sleeper's load of the word before its second test: a sleeper that read the old word does not
     * fall asleep on the new one. */
    atomic_fetch_add_explicit(&event->word, 1, memory_order_seq_cst);
    spc_platform_wake(features, &event->word);
}

void spc_event_stand_in(spc_event_shared_t *event, const spc_event_shared_t *gateway) {
    event->stand_in = (uint32_t)(gateway - event);
    /* Relaxed: the segment is handed out later. */
    atomic_store_explicit(&event->sleeping, SPC_EVENT_STANDS_IN, memory_order_relaxed);
}

void spc_event_wake(spc_event_shared_t *event, uint32_t features) {
    /* Relaxed: a gateway stands in from before the segment was handed out. */
    if (atomic_load_explicit(&event->sleeping, memory_order_relaxed) == SPC_EVENT_STANDS_IN) {
        event += event->stand_in;
        /* seq_cst, as in spc_event_notify: pairs with the gateway's store before its second test. */
        if (atomic_load_explicit(&event->sleeping, memory_order_seq_cst) == 0) {
            return;
        }
    }
    spc_event_raise(event, features);
}
