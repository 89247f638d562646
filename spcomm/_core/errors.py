# SPDX-License-Identifier: MIT
"""Texts of exceptions: what was called, what was found, what is allowed, what to do.

The compiled modules detect errors; the functions below only build the exceptions. Those that only nodes raise are in
`error_text`.
"""

from spcomm import config
from spcomm._core.error_types import AuthenticationError as AuthenticationError
from spcomm._core.error_types import BufferInUseError as BufferInUseError
from spcomm._core.error_types import ConfigError as ConfigError
from spcomm._core.error_types import ConnectionLostError as ConnectionLostError
from spcomm._core.error_types import CycleError as CycleError
from spcomm._core.error_types import DeadlockError as DeadlockError
from spcomm._core.error_types import MismatchError as MismatchError
from spcomm._core.error_types import NodeLostError as NodeLostError
from spcomm._core.error_types import RankError as RankError
from spcomm._core.error_types import SpcommError as SpcommError
from spcomm._core.error_types import TagError as TagError
from spcomm._core.error_types import TruncationError as TruncationError
from spcomm._core.error_types import VersionError as VersionError
from spcomm._core.error_types import WaitTimeoutError as WaitTimeoutError

# ---- the calls, as text


def shown(value: object, limit: int = 60) -> str:
    """Return a repr of bounded length; never fails."""
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    if "\n" in text:  # tables, matrices
        text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def a_kind(value: object) -> str:
    """Return its type, with the article: "an int"."""
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"


def send_call(name: str, dest: object, tag: object) -> str:
    return f"{name}(dest={shown(dest)})" if tag == 0 else f"{name}(dest={shown(dest)}, tag={shown(tag)})"


def recv_call(name: str, source: object, tag: object, timeout_ns: int = -1) -> str:
    limit = f", timeout={timeout_ns / 1e9:g}" if timeout_ns >= 0 else ""
    return f"{name}(source={shown(source)}, tag={shown(tag)}{limit})"


def in_a_part(call: str, rank: int, size: int) -> str:
    """Name the node within its part: arguments are ranks of the communicator, all other ranks those of the run."""
    return f"{call}, as node {rank} of a part of {size}"


# ---- resources


def no_shared_memory(nodes: int, number: int) -> OSError:
    """`number`: why the system refuses it."""
    import os

    from spcomm import resource_limits

    reason, limit = os.strerror(number), resource_limits.text(number)
    cure = f"try fewer nodes, raise the limit {limit}" if limit else "try fewer nodes"
    return OSError(number, f"the shared memory for {nodes} nodes cannot be made ({reason}); {cure}")


# ---- arguments


def _nodes(size: int, members: "tuple[int, ...]" = ()) -> str:
    if members:
        from spcomm.text import ranks_text

        which = "node 0" if size == 1 else f"nodes 0 to {size - 1}"
        are = "is" if size == 1 else "are"
        return f"this part has {which}, which {are} {ranks_text(members)} of the run"
    if size == 1:
        return f"this is a run of one node: {config.how_to_have_more()}"
    return f"this run has nodes 0 to {size - 1}"


def bad_rank(call: str, argument: str, value: int, size: int, members: "tuple[int, ...]" = ()) -> RankError:
    """`members`: for a part, the ranks of its nodes in the run."""
    hint = ""
    if value < 0 and argument != "root":
        names = "spcomm.ANY" if argument == "source" else "spcomm.ALL, spcomm.OTHERS"
        hint = f" (ranks are not negative; there are {names}, spcomm.PROC_NULL)"
    return RankError(
        f"{call}({argument}={shown(value)}): there is no node {shown(value)}{hint}; {_nodes(size, members)}"
    )


def bad_rank_type(call: str, argument: str, value: object) -> TypeError:
    allowed = "an int" if argument == "root" else "an int, spcomm.ANY or spcomm.PROC_NULL"
    if argument == "dest":
        allowed = "an int, an iterable of ints, spcomm.ALL, spcomm.OTHERS or spcomm.PROC_NULL"
    found = f"a rank must be an int, not a {type(value).__name__}"
    error = TypeError(f"{call}({argument}={shown(value)}): {found}; {argument} is {allowed}")
    return error if argument != "dest" else perhaps_swapped(error, call)  # type: ignore[return-value]


def perhaps_swapped(error: Exception, call: str) -> Exception:
    """Add the order of the arguments to the error of a destination that looks like an object to send."""
    order = "move(a, dest)" if call == "move" else f"{call}(obj, dest)"
    error.args = (
        (f"{error}. The order is {order}: are the two swapped?",) if call != "sendrecv" else error.args
    )
    return error


def not_one_target(call: str, value: object) -> TypeError:
    found = f"{call} sends to one node: dest is an int or spcomm.PROC_NULL"
    advice = "For several, call it for each, or use send and a barrier"
    return TypeError(f"{call}(dest={shown(value)}): {found}. {advice}.")


def ssend_to_itself(dest: object) -> RankError:
    found = "this node itself, which has no other thread that could receive, so the call could never return"
    return RankError(f"ssend(dest={shown(dest)}): that is {found}; use send")


def bad_constant(call: str, argument: str, value: object) -> RankError:
    return RankError(f"{call}({argument}={value!r}): {value!r} is not valid as {argument}")


def bad_tag(call: str, argument: str, value: int) -> TagError:
    hint = "; spcomm.ANY receives any tag" if "recv" in call or call in ("probe", "take_message") else ""
    return TagError(
        f"{call}({argument}={shown(value)}): there is no tag {shown(value)}; tags are 0 to {2**31 - 1}{hint}"
    )


def bad_tag_type(call: str, argument: str, value: object) -> TypeError:
    found = f"a tag must be an int from 0 to {2**31 - 1}, not a {type(value).__name__}"
    return TypeError(f"{call}({argument}={shown(value)}): {found}")


def bad_timeout(call: str, value: object) -> ValueError:
    return ValueError(
        f"{call}(timeout={shown(value)}): a timeout is None (wait for ever) or seconds, 0 or more"
    )


def bad_timeout_type(call: str, value: object) -> TypeError:
    found = f"a timeout is None (wait for ever) or a number of seconds, not a {type(value).__name__}"
    return TypeError(f"{call}(timeout={shown(value)}): {found}")


# ---- payloads


def unpicklable(call: str, value: object, error: BaseException) -> TypeError:
    kind = type(value).__name__
    advice = (
        "Send what it is made of: numbers, strings, arrays, or objects of classes defined at module level."
    )
    if isinstance(value, memoryview):
        advice = "Send bytes(view), or np.asarray(view)."
    return TypeError(f"{call}(obj): a {kind} cannot be sent, because it cannot be pickled: {error}. {advice}")


_CLASSES = "Classes must be defined, or importable, on both nodes."


def unreadable(source: int, tag: int, what: str, error: "BaseException | None" = None) -> SpcommError:
    reason = f": {type(error).__name__}: {error}" if error is not None else ""
    made = SpcommError(
        f"the message from node {source} (tag {tag}) cannot be read: {what}{reason}. "
        f"It has been taken from the queue. {_CLASSES}"
    )
    made._unreadable = what + reason  # type: ignore[attr-defined]
    return made


def unreadable_part(call: str, rank: int, error: SpcommError) -> SpcommError:
    """Return the error of a collective call for what `unreadable` says about a message."""
    what = getattr(error, "_unreadable", None)
    if what is None:
        return error
    return SpcommError(f"{call}: the contribution of node {rank} cannot be read: {what}. {_CLASSES}")


def bad_out(reason: str) -> TypeError:
    return TypeError(
        f"recv(out=…): {reason}; out must be a writable NumPy array that holds no Python objects"
    )


_ADVICE_OUT = "It stays queued: receive it without out, or into one that it fits."


def not_for_out(source: int, tag: int, found: str, wanted: object) -> TypeError:
    text = (
        f"recv(out=…): the message from node {source} (tag {tag}) is {found}, and out is an array of {wanted}"
    )
    return TypeError(f"{text}. It stays queued: receive it without out, or into an array of its type.")


def too_long(source: int, tag: int, shape: "tuple[int, ...]", found: int, room: int) -> TruncationError:
    text = f"recv(out=…): the message from node {source} (tag {tag}) is an array of shape {shape}"
    return TruncationError(f"{text}, {found} elements, and out has room for {room}. {_ADVICE_OUT}")


def wrong_shape(source: int, tag: int, shape: "tuple[int, ...]", out: "tuple[int, ...]") -> TruncationError:
    text = (
        f"recv(out=…): the message from node {source} (tag {tag}) has shape {shape}, and out has shape {out}"
    )
    return TruncationError(f"{text} and is not C-contiguous, so only the same shape fits. {_ADVICE_OUT}")


# ---- split


def bad_color(color: object) -> ValueError:
    return ValueError(f"split(color={shown(color)}): a color is an int, 0 or more, or None (to no part)")


def bad_split_type(name: str, value: object) -> TypeError:
    allowed = "an int, 0 or more, or None" if name == "color" else "an int"
    return TypeError(f"split({name}={shown(value)}): a {name} is {allowed}, not a {type(value).__name__}")


def bad_split_number(name: str, value: object) -> ValueError:
    return ValueError(f"split({name}={shown(value)}): a {name} has at most 63 bits")


def cannot_split(color: object, too_many: bool) -> SpcommError:
    if too_many:
        reason = (
            "16383 communicators are open, the most there may be at once; close those that are not used any more, and "
            "drop them and the arrays that came through them. One with nodes of several boxes counts even when it is "
            "closed"
        )
    else:
        reason = (
            "the arena of the part's node 0 has no room for another communicator; close those that are not used any "
            "more, drop arrays that were received and are kept, or start with a larger --arena"
        )
    return SpcommError(f"split(color={shown(color)}): {reason}")


# ---- startup


def wrong_nodes(argument: str, value: object, allowed: str) -> ConfigError:
    return ConfigError(f"startup({argument}={shown(value)}): {allowed}")


def bad_seed(value: object, error: Exception) -> Exception:
    return type(error)(
        f"rng(seed={shown(value)}): a seed is an int, 0 or more, or a sequence of them ({error})"
    )


def executed_node(rank: str, size: str) -> ConfigError:
    found = f"this process was node {rank} of {size} until it executed this program in its own place"
    advice = (
        "A node may execute a program before its first startup(), under spcomm run with `--start exec`; "
        "later, try subprocess.run(), which starts the program beside the node"
    )
    return ConfigError(f"startup(): {found} (as os.execv does), and this program is no node. {advice}.")


def closed_segment(fd: int, rank: int) -> ConfigError:
    found = f"descriptor {fd}, through which node {rank} reaches the run's shared memory, has been closed"
    advice = "Call startup() before anything that closes descriptors which are not its own (os.closerange)"
    return ConfigError(f"startup(): {found}. {advice}.")
