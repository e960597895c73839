"""The groups in which pages show areas, scopes and events, as those of the navigation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from msgsvc_core.api.endpoint import AreaGroup
from msgsvc_core.kernel.i18n import Translate

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Grouped(Generic[T]):
    """The members of a group, with its title in the reader's language."""

    name: AreaGroup
    title: str
    members: Sequence[T]


def in_groups(
    translate: Translate, members: Sequence[T], group_of: Callable[[T], AreaGroup]
) -> list[Grouped[T]]:
    """The groups that have members, from the top; the members of each in the order given."""
    found = []
    for name, title in _titles(translate[__name__]).items():
        these = [each for each in members if group_of(each) == name]
        if these:
            found.append(Grouped(name, title, these))
    return found


def _titles(_: Translate) -> Mapping[AreaGroup, str]:
    return {
        "people": _("People"),
        "sending": _("Sending"),
        "sign_in": _("Sign-in"),
        "intake": _("Forms"),
        "developers": _("Developers"),
        "project": _("Project"),
        "other": _("Other"),
    }
