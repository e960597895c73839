"""Finds what stands at a path: a tree of segments, of which `{name}` takes any."""

from typing import Generic, TypeVar

T = TypeVar("T")


class Paths(Generic[T]):
    """What was put at `/v1/messages/{message_id}` is found at `/v1/messages/msg_1`.

    A literal segment comes before a parameter in its place. A parameter is never empty.
    """

    def __init__(self) -> None:
        self._found: T | None = None
        self._names: tuple[str, ...] = ()
        self._literal: dict[str, Paths[T]] = {}
        self._any: Paths[T] | None = None

    def add(self, path: str, what: T) -> None:
        """Makes `what` be found at `path`."""
        node = self
        names: list[str] = []
        for segment in path.split("/"):
            if segment.startswith("{"):
                names.append(segment[1:-1])
                node._any = node._any or Paths()
                node = node._any
            else:
                node = node._literal.setdefault(segment, Paths())
        node._found, node._names = what, tuple(names)

    def match(self, path: str) -> tuple[T, dict[str, str]] | None:
        """What stands at `path`, and the parameters by name."""
        values: list[str] = []
        node = self._walk(path.split("/"), 0, values)
        if node is None:
            return None
        assert node._found is not None
        return node._found, dict(zip(node._names, values, strict=True))

    def _walk(self, segments: list[str], depth: int, values: list[str]) -> "Paths[T] | None":
        """The node at which the segments from `depth` on end; their parameters are added to `values`."""
        if depth == len(segments):
            return None if self._found is None else self
        segment = segments[depth]
        if (node := self._literal.get(segment)) is not None:
            found = node._walk(segments, depth + 1, values)
            if found is not None:
                return found
        if self._any is None or not segment:
            return None
        values.append(segment)
        found = self._any._walk(segments, depth + 1, values)
        if found is None:
            values.pop()
        return found
