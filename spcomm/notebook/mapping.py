# SPDX-License-Identifier: MIT
"""`Cluster.map`: each node gets the next item when it has given back the last one."""

from spcomm.launch.base.wire import encoded
from spcomm.notebook.calls import Call


class MapCall(Call):
    """A call whose work comes item by item."""

    def run_items(self, parts: "list[bytes]", work: bytes, lines: "dict[str, list[str]]") -> None:
        """Have the function called with each of these, and return when all is done, or has failed."""
        self.items: dict[int, bytes] = {}
        self._parts = parts
        self._next = 0
        self._at: dict[int, int] = {}  # which item a node has
        self.run("map", work, lines, alone=True)

    def begun(self, node: int) -> None:
        self._hand_out(node)

    def heard(self, node: int, verb: str, *rest: object) -> None:
        if verb == "item":
            self.items[rest[0]] = rest[1]  # type: ignore[index, assignment]
            self._hand_out(node)
        else:
            super().heard(node, verb, *rest)

    def _hand_out(self, node: int) -> None:
        self._at.pop(node, None)
        if self._next == len(self._parts) or self.reason or self.has_failed:
            self.tell(node, encoded(("enough",)))
            return
        self._at[node] = self._next
        self.tell(node, encoded(("item", self._next, self._parts[self._next])))
        self._next += 1

    def _how(self, node: int, kind: bytes, detail: str) -> str:
        how = super()._how(node, kind, detail)
        return f"{how} (item {self._at[node]})" if node in self._at else how
