"""Lines that stand for what a person shared other than text: a place, a contact, an unknown kind of message.

They are short facts in brackets, for the agent who reads a ticket. No message is dropped because its kind is
not known.
"""

from collections.abc import Iterable

#: Characters of one line.
MAX_LENGTH = 500


def place(latitude: object, longitude: object, *names: object) -> str:
    """A point, in degrees, and what it is called.

    >>> place(52.52, 13.405, "Café", None)
    '[Location: Café, 52.52, 13.405]'
    """
    return _line("Location", [*names, latitude, longitude])


def contact(name: object, numbers: Iterable[object] = ()) -> str:
    """Somebody whom the person names.

    >>> contact("Ann Lee", ["+12025550123"])
    '[Contact: Ann Lee, +12025550123]'
    """
    return _line("Contact", [name, *numbers])


def unknown(kind: object) -> str:
    """A message whose content is not handed on, by the platform's name for its kind.

    >>> unknown("poll")
    '[Message of the kind poll, which can be seen in the messenger only]'
    """
    shown = " ".join(str(kind).split())[:50] or "unknown"
    return f"[Message of the kind {shown}, which can be seen in the messenger only]"


def _line(what: str, facts: Iterable[object]) -> str:
    # What a platform sends in the place of a word or a number may be anything.
    words = (" ".join(str(fact).split()) for fact in facts if isinstance(fact, str | int | float))
    shown = ", ".join(word for word in words if word)
    return f"[{what}: {shown[:MAX_LENGTH]}]" if shown else f"[{what}]"
