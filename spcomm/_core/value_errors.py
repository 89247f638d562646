# SPDX-License-Identifier: MIT
"""The words for times, destinations and handlers that cannot be: what was given, and what is allowed."""

from spcomm._core.errors import RankError, TagError, shown


def bad_time(value: object, why: str) -> ValueError:
    return ValueError(f"SimTime({shown(value)}): {why}")


def bad_time_type(value: object) -> TypeError:
    return TypeError(f"SimTime({shown(value)}): a time is a real number, not a {type(value).__name__}")


def two_priorities(value: object) -> TypeError:
    found = f"{shown(value)} has priorities of its own"
    return TypeError(f"SimTime({shown(value)}, …): {found}; for others give float(t) as the time")


def _priority(number: int, value: object, found: str) -> str:
    return f"SimTime(p{number}={shown(value)}): a priority is an int from {-(2**31)} to {2**31 - 1}{found}"


def bad_priority(number: int, value: object) -> ValueError:
    return ValueError(_priority(number, value, ""))


def bad_priority_type(number: int, value: object) -> TypeError:
    return TypeError(_priority(number, value, f", not a {type(value).__name__}"))


def no_time_record(value: object) -> TypeError:
    found = f"an array element of {value.dtype}" if hasattr(value, "dtype") else f"a {type(value).__name__}"
    return TypeError(
        f"SimTime.from_record({shown(value)}): a record is one element of an array of SimTime.dtype, not {found}"
    )


def nan_result(call: str) -> ValueError:
    why = "inf and -inf are among the times, or a C program gave NaN"
    name = call.partition("(")[0]
    return ValueError(f"{name}(x): the result is NaN, which is no SimTime: {why}. All nodes took part.")


def bad_ranks(value: object) -> TypeError:
    found = f"ranks are an iterable of ints, not a {type(value).__name__}"
    return TypeError(f"Destination({shown(value)}): {found}; for one node, Destination([rank])")


def _member(method: str, value: object, limit: int) -> str:
    call = f"Destination().{method}({shown(value)})" if method else f"Destination([… {shown(value)} …])"
    return f"{call}: a rank is an int from 0 to {limit - 1}"


def bad_member(method: str, value: object, limit: int) -> RankError:
    return RankError(_member(method, value, limit))


def bad_member_type(method: str, value: object, limit: int) -> TypeError:
    return TypeError(f"{_member(method, value, limit)}, not a {type(value).__name__}")


def bad_handler(tag: int, value: object) -> TypeError:
    return TypeError(
        f"handler(tag={tag}): a {type(value).__name__} cannot be called; "
        f"decorate a function of one argument, the Message"
    )


def tag_has_handler(call: str, tag: int, function: object) -> TagError:
    name = getattr(function, "__qualname__", repr(function))
    return TagError(
        f"{call}(tag={tag}): messages of this tag are for their handler, {name}; receives never see them. "
        f"Try: another tag, or poll(), which calls the handler."
    )


def bad_cost(value: object) -> ValueError:
    found = "a cost is a finite number of units, 0 or more"
    return ValueError(f"work({shown(value)}): {found}, as in comm.work(2.5); a unit is slept as a millisecond")
