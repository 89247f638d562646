# SPDX-License-Identifier: MIT
"""The words of what goes wrong with arrays that live in shared memory: `empty` and `move`."""

from spcomm._core.errors import BufferInUseError, shown


def bad_dtype(call: str, dtype: object) -> TypeError:
    reason = "it holds Python objects, which are of no use to another process"
    return TypeError(f"{call}: an array of {dtype} cannot live in shared memory: {reason}. Use send.")


def bad_shape(value: object) -> TypeError:
    return TypeError(f"empty(shape={shown(value)}): a shape is an int or a sequence of ints")


def negative_shape(value: object) -> ValueError:
    return ValueError(f"empty(shape={shown(value)}): lengths are 0 or more")


def too_large(value: object, dtype: object) -> MemoryError:
    return MemoryError(f"empty(shape={shown(value)}): an array of {dtype} of this shape exceeds all memory")


def bad_order(value: object) -> ValueError:
    return ValueError(f"empty(order={shown(value)}): order is 'C' (last index fastest) or 'F' (first)")


def not_an_array(value: object) -> TypeError:
    kind = type(value).__name__
    advice = "move takes a numpy.ndarray, best one from comm.empty or recv. Use send, which copies"
    return TypeError(f"move(a): a is a {kind}; {advice}.")


def is_a_view(base: object) -> BufferInUseError:
    found = f"a does not own its memory, which belongs to a {type(base).__name__}"
    return BufferInUseError(f"move(a): {found}. Move the array itself, or send this one, which copies it.")


def is_a_part(found: int, whole: int) -> BufferInUseError:
    text = f"a is a view of {found} of the {whole} bytes of an array, or not contiguous"
    return BufferInUseError(f"move(a): {text}; only whole arrays can be moved. Use send, which copies it.")


def is_seen(kind: str) -> BufferInUseError:
    text = f"{kind} still sees the memory of a, and would see what its next owner writes"
    return BufferInUseError(f"move(a): {text}. Delete that first (del), or use send, which copies.")


def is_shared() -> BufferInUseError:
    text = "other nodes see the memory of a, which was received with copy=False"
    return BufferInUseError(f"move(a): {text}. Use send, which copies it.")
