"""The scopes that a new key may have: presets, and areas in groups."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from msgsvc_core.api.endpoint import AreaGroup, Endpoint
from msgsvc_core.dashboard import PageContext
from msgsvc_core.dashboard.area_groups import Grouped, in_groups
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.kernel.i18n import package_of
from msgsvc_core.projects.models import ALL_BUT_OWNERS, EVERYTHING, READ_ONLY

#: The areas that a site needs to sign people in, and a program to send them messages with files: the fewest
#: that do. The scopes of plugins that are not loaded are left out.
PRESETS: Mapping[str, Sequence[str]] = {
    "send": ("messages", "files"),
    "sign_in": ("auth", "otp"),
}


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
        _, known = page._, self.of(page)
        texts = {
            "send": (_("Send messages"), _("For a server that notifies people.")),
            "sign_in": (_("Sign people in"), _("For a site whose users sign in by messenger.")),
        }
        narrow = {
            name: [area for area in areas if area in known] for name, areas in PRESETS.items()
        }
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
        wanted = PRESETS.get(which, page.form.texts("areas"))
        scopes = tuple(area for area in self.of(page) if area in wanted)
        if not scopes:
            # What opens nothing must not open everything.
            raise ValidationFailed(page._("Choose at least one scope, or all."))
        return scopes

    def _open_to(self, page: PageContext) -> list[Endpoint]:
        owns = page.may("project:own")
        return [
            each for each in self._endpoints() if not each.public and (owns or not each.owners_only)
        ]
