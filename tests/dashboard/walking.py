"""Every page of every area, as an address that somebody can open.

Pages are read from the areas themselves, so that none can be forgotten. What a parameter of a new page names
is looked for among `tests.api.resources`, by the parameter's own name; where pages call it otherwise, it is
said in `NAMED`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgsvc_core.dashboard import Page
from msgsvc_core.kernel.hooks import flatten
from msgsvc_core.service import Service
from tests.api import resources

SETTINGS: dict[str, Any] = {
    **resources.SETTINGS,
    "plugins": (*resources.PLUGINS, "billing", "dashboard"),
    # The free plan has no members, and saves no lists.
    "billing": {"default_plan": "pro"},
    "dashboard": {"gallery": True},
}

#: The resource that a parameter names, where its own name does not say it: by the page's path, or by the
#: parameter alone. After `=` stands what is no resource, but a place in one.
NAMED: dict[str, str] = {
    "record_id": "scheduled_id",
    "/sign-in/try/{session_id} session_id": "trial_id",
    "/drips/{drip_id}/steps/{number} number": "=1",
    "/drips/{drip_id}/steps/{number}/move number": "=1",
    "/drips/{drip_id}/steps/{number}/preview number": "=1",
    "/drips/{drip_id}/steps/{number}/remove number": "=1",
    **{
        f"/shelf/{{channel}}{rest} channel": "=messenger_a"
        for rest in ("", *(f"/{{item_id}}{each}" for each in ("", "/content", "/take", "/delete")))
    },
    **{
        f"/shelf/{{channel}}/{{item_id}}{rest} item_id": "shared_item_id"
        for rest in ("", "/content", "/take", "/delete")
    },
    **{f"/jobs/{{job_id}}{rest} job_id": "waiting_job_id" for rest in ("", "/retry", "/discard")},
}

_PARAMETER = re.compile(r"{(\w+)(?::\w+)?}")


@dataclass(frozen=True, slots=True)
class Walk:
    """A page at an address."""

    page: Page
    url: str

    def __str__(self) -> str:
        return f"{self.page.method} {self.page.path or '/'} ({self.page.name})"


def pages_of(service: Service) -> list[Page]:
    found = flatten(service.plugins.hook.register_dashboard())
    return [page for area in found for page in area.pages]


def parameters(page: Page) -> list[str]:
    return _PARAMETER.findall(page.path)


def at(page: Page, project_id: str, ids: Mapping[str, str]) -> Walk:
    """The page of that project's with these resources."""

    def value(match: re.Match[str]) -> str:
        name = NAMED.get(f"{page.path} {match[1]}") or NAMED.get(match[1]) or match[1]
        if name.startswith("="):
            return name[1:]
        assert name in ids, f"say in {__name__} what {match[1]!r} of {page.path} is"
        return ids[name]

    inside = {"installation:operate": "operator", "account:self": "account"}.get(
        page.access, f"projects/{project_id}"
    )
    return Walk(page, f"/dashboard/{inside}{_PARAMETER.sub(value, page.path)}")
