# SPDX-License-Identifier: MIT
"""Frozen dataclasses without `dataclasses`, whose import takes longer than all else that the launcher does first.

Type checkers see the library's own, and so check constructors, `replace` and that nothing assigns to an attribute.
Here a record is equal to itself only.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dataclasses import dataclass, field, replace
else:

    class field:
        """The default of an attribute, made anew for each record."""

        def __init__(self, *, default_factory):
            self.make = default_factory

    def dataclass(*, frozen, eq):
        """Return the decorator of a class whose annotations are the attributes of its records, in order."""
        assert frozen and not eq
        return _made

    def replace(record, **changes):
        """Return a record like this one but for some attributes."""
        return type(record)(**{**vars(record), **changes})

    def _made(kind):
        kind.__init__ = _fill
        kind.__setattr__ = kind.__delattr__ = _refuse
        return kind

    def _fill(self, *values, **named):
        names = type(self).__annotations__
        if len(values) > len(names):
            raise TypeError(f"{type(self).__name__}: takes {len(names)} values, not {len(values)}")
        given = dict(zip(names, values, strict=False))
        if given.keys() & named.keys():
            raise TypeError(
                f"{type(self).__name__}: has two values for {', '.join(given.keys() & named.keys())}"
            )
        given.update(named)
        missing = [name for name in names if name not in given]
        given.update((name, _default(type(self), name)) for name in missing)
        if len(given) > len(names):
            raise TypeError(f"{type(self).__name__}: has no {', '.join(given.keys() - names.keys())}")
        vars(self).update(given)

    def _default(kind, name):
        default = getattr(kind, name)
        return default.make() if isinstance(default, field) else default

    def _refuse(self, name, *_value):
        raise AttributeError(f"{type(self).__name__}.{name}: records are frozen; replace() makes another")


__all__ = ["dataclass", "field", "replace"]
