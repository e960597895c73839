"""The scopes that a new key may have: presets, and areas in groups."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import get_args

from msgsvc_core.api.endpoint import AreaGroup, Endpoint, KeyPurpose
from msgsvc_core.dashboard import PageContext
from msgsvc_core.dashboard.area_groups import Grouped, in_groups
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.kernel.i18n import package_of
from msgsvc_core.projects.models import ALL_BUT_OWNERS, EVERYTHING, READ_ONLY, ApiKey

#: Presets of scopes, each with the areas that declare its purpose.
PURPOSES: tuple[KeyPurpose, ...] = get_args(KeyPurpose)

#: The operation that a key for everything is tried with: it changes nothing.
HARMLESS = "get_project"


@dataclass(frozen=True, slots=True)
class ShownArea:
    """A scope, and what it opens."""

    name: str
    description: str
    group: AreaGroup


@dataclass(frozen=True, slots=True)
class Preset:
    """One choice of the form; `areas` are those that it stands for, empty where it says so itself."""

    name: str
    title: str
    text: str
    areas: Sequence[str] = ()


class KeyAreas:
    """The areas that a key may have as scopes. `endpoints` has all of them."""

    def __init__(self, *, endpoints: Callable[[], Sequence[Endpoint]]) -> None:
        self._endpoints = endpoints

    def of(self, page: PageContext) -> list[str]:
        """Those that whoever makes a key may open."""
        return sorted({each.area for each in self._open_to(page)})

    def groups(self, page: PageContext) -> list[Grouped[ShownArea]]:
        """The same in groups, described in the reader's language."""
        described: dict[str, Endpoint] = {}
        for each in self._open_to(page):
            if each.area not in described or not described[each.area].area_description:
                described[each.area] = each
        areas = [
            ShownArea(
                name, page._[package_of(each.handler)](each.area_description), each.area_group
            )
            for name, each in sorted(described.items())
        ]
        return in_groups(page._, areas, lambda area: area.group)

    def presets(self, page: PageContext) -> list[Preset]:
        """What the form offers besides chosen areas."""
        _ = page._
        texts: Mapping[KeyPurpose, tuple[str, str]] = {
            "send": (_("Send messages"), _("For a server that notifies people.")),
            "sign_in": (_("Sign people in"), _("For a site whose users sign in by messenger.")),
        }
        narrow = {purpose: self._areas_for(page, purpose) for purpose in PURPOSES}
        return [
            Preset("all", _("Everything"), _("All areas, also those of later versions.")),
            Preset("read", _("Read only"), _("Reads all areas, and changes nothing.")),
            *(Preset(name, *texts[name], areas) for name, areas in narrow.items() if areas),
        ]

    def chosen(self, page: PageContext) -> tuple[str, ...]:
        """The scopes of the form. Raises `ValidationFailed` if there are none."""
        which = page.form.text("which", "all")
        if which == "all":
            return (EVERYTHING if page.may("project:own") else ALL_BUT_OWNERS,)
        if which == "read":
            return (READ_ONLY,)
        wanted = self._areas_for(page, which) if which in PURPOSES else page.form.texts("areas")
        scopes = tuple(area for area in self.of(page) if area in wanted)
        if not scopes:
            # What opens nothing must not open everything.
            raise ValidationFailed(page._("Choose at least one scope, or all."))
        return scopes

    def first_call(self, key: ApiKey) -> str:
        """The operation that a new key is tried with: `HARMLESS` if the key opens it, else the first that it
        opens of those with a `first_call`; empty if there is none."""
        first = [
            (each.first_call, each) for each in self._endpoints() if each.first_call is not None
        ]
        opened = [
            each.name
            for _, each in sorted(first, key=itemgetter(0))
            if key.opens(each.area, writes=each.writes, owners_only=each.owners_only)
        ]
        return HARMLESS if HARMLESS in opened else next(iter(opened), "")

    def _areas_for(self, page: PageContext, purpose: str) -> list[str]:
        """The areas that declare the purpose, in their order."""
        found = (each.area for each in self._open_to(page) if each.key_purpose == purpose)
        return list(dict.fromkeys(found))

    def _open_to(self, page: PageContext) -> list[Endpoint]:
        owns = page.may("project:own")
        return [
            each for each in self._endpoints() if not each.public and (owns or not each.owners_only)
        ]
