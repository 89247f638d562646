/* SPDX-License-Identifier: MIT */
#include "base/spc_error.h"

const char *spc_error_name(int status) {
    switch (status) {
#define SPC_ERROR_NAME(name, number, message) \
    case SPC_##name:                          \
        return "SPC_" #name;
        SPC_ERRORS(SPC_ERROR_NAME)
#undef SPC_ERROR_NAME
    default:
        return "SPC_UNKNOWN";
    }
}

const char *spc_error_message(int status) {
    switch (status) {
#define SPC_ERROR_MESSAGE(name, number, message) \
    case SPC_##name:                             \
        return message;
        SPC_ERRORS(SPC_ERROR_MESSAGE)
#undef SPC_ERROR_MESSAGE
    default:
        return "not an error number of spcomm";
    }
}
