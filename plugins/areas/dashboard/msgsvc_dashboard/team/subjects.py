"""What entries of the audit log are about: what the log is filtered by, and the pages they lead to."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from string import Formatter
from urllib.parse import quote

from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.dashboard import Page, PageContext
from msgsvc_core.kernel.i18n import Translate
from msgsvc_dashboard.accounts.models import AuditEntry

#: By name, the first parts of the actions about it: of pages, of endpoints and of commands.
AREAS: Mapping[str, tuple[str, ...]] = {
    "subscribers": ("subscribers", "tags", "permissions"),
    "messages": ("messages", "templates", "routes"),
    "broadcasts": ("broadcasts", "broadcast"),
    "scheduled": ("scheduling",),
    "campaigns": ("drip", "drips"),
    "forms": ("forms",),
    "tickets": ("helpdesk",),
    "sign_in": ("auth", "otp", "oidc", "gateways"),
    "developers": ("developers", "key", "channels", "webhooks"),
    "team": ("team", "members", "member", "account"),
    "project": ("project", "billing", "views"),
}


def titles(_: Translate) -> Mapping[str, str]:
    """What each is called, in the order in which they are offered."""
    return {
        "subscribers": _("Subscribers"),
        "messages": _("Messages"),
        "broadcasts": _("Broadcasts"),
        "scheduled": _("Scheduled messages"),
        "campaigns": _("Drip campaigns"),
        "forms": _("Forms"),
        "tickets": _("Tickets"),
        "sign_in": _("Sign-in"),
        "developers": _("Developers"),
        "team": _("Team"),
        "project": _("Project"),
    }


class AuditSubjects:
    """The page of what a change was about: that whose path has the parameters of the change's."""

    def __init__(
        self,
        *,
        pages: Callable[[], Sequence[Page]],
        endpoints: Callable[[], Sequence[Endpoint]],
    ) -> None:
        self._find_pages = pages
        self._find_endpoints = endpoints

    def url(self, page: PageContext, entry: AuditEntry) -> str:
        """Its address; empty if it has no page, was deleted by this change, or may not be opened."""
        names = self._names.get(entry.action, ())
        values = (entry.target or "").split(" ") if len(names) > 1 else [entry.target or ""]
        if not all(values) or len(values) != len(names):
            return ""
        # The page of a part, else that of the whole: of a form for one of its submissions.
        for count in range(len(names), 0, -1):
            shown = self._shown.get(names[:count])
            if shown is not None and page.may(shown.access):
                parts = dict(zip(names, (quote(each, safe="") for each in values), strict=True))
                return page.url(shown.path.format_map(parts))
        return ""

    @cached_property
    def _shown(self) -> Mapping[tuple[str, ...], Page]:
        """The pages that show one thing, by the parameters of their paths."""
        return {
            _parameters(page.path): page
            for page in self._find_pages()
            if page.method == "GET"
            and page.path.endswith("}")
            and page.access not in {"account:self", "installation:operate"}
        }

    @cached_property
    def _names(self) -> Mapping[str, tuple[str, ...]]:
        """The parameters of each change that leaves something to look at."""
        pages = {
            each.name: _parameters(each.path)
            for each in self._find_pages()
            if each.method == "POST" and not each.path.endswith("/delete")
        }
        endpoints = self._find_endpoints()
        made = {
            path: _parameters(each.path)
            for each in endpoints
            if (path := each.path.rpartition("/{")[0]) and each.method == "GET"
        }
        called = {
            f"{each.area}.{each.name}": _parameters(each.path) or made.get(each.path, ())
            for each in endpoints
            if each.audited and each.method != "DELETE"
        }
        return {**pages, **called}


def _parameters(path: str) -> tuple[str, ...]:
    return tuple(name for _, name, _, _ in Formatter().parse(path) if name)
