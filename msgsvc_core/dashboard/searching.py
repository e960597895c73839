"""What areas contribute to the search of a project."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hit:
    """Something that a search found.

    `kind` says what it is, in the viewer's language, and is the heading above hits of one kind. `detail`
    stands beside the title. `is_exact` says that the searched text is its id: it is opened at once, if it is
    the only one.
    """

    kind: str
    title: str
    url: str
    detail: str = ""
    icon: str = "search"
    is_exact: bool = False
