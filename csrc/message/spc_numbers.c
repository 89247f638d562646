/* SPDX-License-Identifier: MIT */
#include "message/spc_numbers.h"

#include <stdlib.h>

#include "base/spc_error.h"

int spc_numbers_create(spc_numbers_t **numbers) {
    spc_numbers_t *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SPC_ENOMEM;
    }
    made->next = 1;
    made->number[0].members = SPC_NUMBER_TAKEN;
    *numbers = made;
    return SPC_OK;
}

void spc_numbers_destroy(spc_numbers_t *numbers) {
    free(numbers);
}

uint32_t spc_numbers_reserve(spc_numbers_t *numbers, uint32_t least) {
    uint32_t number = least;
    numbers->generation++;
    while (number < SPC_COMMUNICATORS_MAX && numbers->number[number].members != 0) {
        number++;
    }
    if (number < SPC_COMMUNICATORS_MAX) {
        numbers->number[number].members = SPC_NUMBER_TAKEN;
    }
    return number;
}

bool spc_numbers_take(spc_numbers_t *numbers, uint32_t number) {
    const bool is_free = number < SPC_COMMUNICATORS_MAX && numbers->number[number].members == 0;
    if (is_free) {
        numbers->number[number].members = SPC_NUMBER_TAKEN;
    }
    return is_free;
}

void spc_numbers_list_free(const spc_numbers_t *numbers, uint64_t words[SPC_NUMBERS_WORDS]) {
    for (uint32_t number = 0; number < SPC_COMMUNICATORS_MAX; number++) {
        const uint64_t bit = numbers->number[number].members == 0;
        words[number / 64] = (number % 64 == 0 ? 0 : words[number / 64]) | bit << number % 64;
    }
}

void spc_numbers_give_back(spc_numbers_t *numbers, uint32_t number) {
    numbers->number[number].members = 0;
    numbers->number[number].lasts = 0;
}

void spc_numbers_note_made(spc_numbers_t *numbers, uint32_t number, uint32_t members) {
    numbers->number[number].members = (uint16_t)members;
    numbers->next = number + 1;
}

bool spc_numbers_note_last(spc_numbers_t *numbers, uint32_t number) {
    numbers->number[number].lasts++;
    if (numbers->number[number].lasts != numbers->number[number].members) {
        return false;
    }
    spc_numbers_give_back(numbers, number);
    return true;
}
