# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""Channels over MPI (csrc/net/link/spc_channel_mpi.h), for gateways that mpiexec has started; nothing else loads this.

mpi4py has loaded the library of MPI. The functions are looked up where its extension finds them, whatever the library
is called, so that neither the build nor the machine needs an mpi.h.
"""

from cpython.pycapsule cimport PyCapsule_New
from libc.stdint cimport uintptr_t

from libspc cimport *

import os

cdef extern from "dlfcn.h" nogil:
    void *dlopen(const char *path, int flags)
    int RTLD_NOW, RTLD_NOLOAD

cdef extern from *:
    """
    #include <dlfcn.h>
    #include "net/link/spc_channel_mpi.h"
    static inline spc_mpi_function_t *spcpy_function(void *library, const char *name) {
        union { void *object; spc_mpi_function_t *function; } found = {dlsym(library, name)};
        return found.function;
    }
    """
    spc_mpi_function_t *spcpy_function(void *library, const char *name)

cdef spc_mpi_functions_t functions


cdef spc_mpi_handle_t handle(MPI, value):
    """The handle of an object of mpi4py. It is an int in MPICH's ABI, which may be negative; else a pointer."""
    cdef spc_mpi_handle_t found
    found.wide = NULL
    if functions.are_wide:
        found.wide = <void *><uintptr_t>MPI._handleof(value)
    else:
        found.narrow = <int>(<unsigned int>(MPI._handleof(value) & 0xFFFFFFFF))
    return found


def load(MPI):
    """Look the functions up that channels call. `MPI`: the module mpi4py.MPI. OSError: it has none of them."""
    cdef void *library = dlopen(os.fsencode(MPI.__file__), RTLD_NOW | RTLD_NOLOAD)
    if library == NULL or MPI._sizeof(MPI.Status) > SPC_MPI_STATUS_BYTES:
        raise OSError(f"{MPI.__file__} is no mpi4py.MPI that spcomm knows")
    functions.are_wide = MPI._sizeof(MPI.Comm) != sizeof(int)
    functions.byte = handle(MPI, MPI.BYTE)
    functions.isend = spcpy_function(library, b"MPI_Isend")
    functions.irecv = spcpy_function(library, b"MPI_Irecv")
    functions.test = spcpy_function(library, b"MPI_Test")
    functions.wait = spcpy_function(library, b"MPI_Wait")
    functions.cancel = spcpy_function(library, b"MPI_Cancel")
    functions.get_count = spcpy_function(library, b"MPI_Get_count")
    if (functions.isend == NULL or functions.irecv == NULL or functions.test == NULL or functions.wait == NULL
            or functions.cancel == NULL or functions.get_count == NULL):
        raise OSError(f"{MPI.__file__} finds no MPI_Isend")


def make(MPI, comm, int rank, int tag):
    """Return a channel to that rank of the communicator, after `load`: for `net.Gateway.attach_peer_channel`."""
    cdef spc_channel_t *channel = NULL
    if spc_channel_mpi_create(&functions, handle(MPI, comm), rank, tag, &channel) != SPC_OK:
        raise MemoryError
    return PyCapsule_New(channel, b"spc_channel_t", NULL)
