/* SPDX-License-Identifier: MIT */
/*
 * net_types_access_both: many elements at once, for both types (net_types.h). Nobody needs a lock: a value that
 * another thread puts in order meanwhile is read right, since an int is loaded together with its status (doubles:
 * net_types_double.h).
 */

static void NET(unpack_each)(const char *from, npy_intp stride, npy_intp count, NET_VALUE *to) {
    for (npy_intp i = 0; i < count; i++) {
        to[i] = NET_CALL(value)(NET_CALL(load)(from + i * stride));
    }
}

/* Elements side by side: numbers as if none were foreign; whether one may be. Compilers make vectors of the loop. */
static int NET(unpack_quickly)(const char *from, npy_intp count, NET_VALUE *to) {
    const char foreign_bit[8] = {SPCOMM_NET_FOREIGN & ~SPCOMM_NET_OWN}; /* in no status but a foreign one */
    npy_uint64 seen = 0, mask;
    memcpy(&mask, foreign_bit, sizeof mask);
    for (npy_intp i = 0; i < count; i++) {
        /* An int's number lies in it, too. Pairs with the exchange of spcomm_net_int_read(), which touches multiples of
         * 8 only: there processors load 8 bytes at one moment, in vectors, too, and atomic loads make none. */
        npy_uint64 status;
        memcpy(&status, from + i * sizeof(NET_ELEMENT), sizeof status);
        seen |= status;
#if NET_IS_INT
        to[i] = (npy_int32)(SPCOMM_NET_OWN == 'L' ? status >> 32 : status);
#else
        memcpy(&to[i], from + i * sizeof(NET_ELEMENT) + 8, sizeof to[i]);
#endif
    }
    return (seen & mask) != 0;
}

void NET(unpack)(const char *from, npy_intp stride, npy_intp count, NET_VALUE *to) {
    for (npy_intp done = 0; done < count; done += NET_PIECE) {
        const npy_intp some = count - done < NET_PIECE ? count - done : NET_PIECE;
        const char *start = from + done * stride;
        if (stride != sizeof(NET_ELEMENT) || NET(unpack_quickly)(start, some, to + done)) {
            NET(unpack_each)(start, stride, some, to + done);
        }
    }
}

void NET(pack)(const NET_VALUE *from, char *to, npy_intp stride, npy_intp count) {
    if (stride == sizeof(NET_ELEMENT) && (npy_uintp)to % sizeof(NET_VALUE) == 0) {
        NET_ELEMENT *elements = (NET_ELEMENT *)to;
        for (npy_intp i = 0; i < count; i++) {
            elements[i] = NET_CALL(from)(from[i]);
        }
        return;
    }
    for (npy_intp i = 0; i < count; i++) {
        const NET_ELEMENT element = NET_CALL(from)(from[i]);
        memcpy(to + i * stride, &element, sizeof element);
    }
}

npy_intp NET(count_foreign)(const char *from, npy_intp stride, npy_intp count) {
    npy_intp found = 0;
    for (npy_intp i = 0; i < count; i++) {
        found += from[i * stride] == SPCOMM_NET_FOREIGN;
    }
    return found;
}
