# SPDX-License-Identifier: MIT
"""NET_INT and NET_DOUBLE: NumPy dtypes of numbers that carry the byte order of the machine that wrote them.

=============  =====================================================================================
`net_types`    the extension: dtypes, scalars, casts and loops in C; `net_types.h` lists its files
`net_scalars`  the attributes of numpy.generic for scalars, and arrays to reduce
=============  =====================================================================================

Nothing here uses the core: arrays of these types need no communicator.
"""
