/* SPDX-License-Identifier: MIT */
/*
 * spc_advice: why nodes wait for each other for ever, and what to try; the last two lines of spc_verdict.
 *
 * Pure functions on what has been read. The sentences are those of spcomm/diagnose/deadlock.py: a rule that is added
 * here is added there. What is to be tried is said with the functions of the language that all of them are written in.
 */
#ifndef SPC_ADVICE_H
#define SPC_ADVICE_H

#include <stdio.h>

#include "diagnose/spc_waits.h"

/* Two lines, the last one without its end. SPC_OK; SPC_ENOMEM: one of them may be cut short. */
int spc_advice_write(const spc_waits_t *waits, FILE *out);

#endif
