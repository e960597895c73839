"""What entries of the audit log say, by their action: a page's name, an API operation or a command."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.dashboard import Page
from msgsvc_core.kernel.i18n import Title, Translate, titled

#: What this plugin records beside its pages.
RECORDED: Mapping[str, Title] = {
    "account.created": lambda _: _("Account created"),
    "account.disabled": lambda _: _("Account disabled"),
    "account.enabled": lambda _: _("Account enabled"),
    "account.link_made": lambda _: _("Account link created"),
    "account.messenger_linked": lambda _: _("Messenger linked"),
    "account.operator": lambda _: _("Operator rights changed"),
    "account.remove_second_factor": lambda _: _("Two-factor authentication turned off"),
    "account.sign_in_failed": lambda _: _("Sign-in failed"),
    "account.signed_in": lambda _: _("Signed in"),
    "team.joined": lambda _: _("Member joined"),
}


class ActionTitles:
    """Titles of changes, each declared by its owner: those of pages and endpoints with them, others by the
    hook `register_audited`."""

    def __init__(
        self,
        *,
        pages: Callable[[], Sequence[Page]],
        endpoints: Callable[[], Sequence[Endpoint]],
        recorded: Callable[[], Iterable[Mapping[str, Title]]],
    ) -> None:
        self._find_pages = pages
        self._find_endpoints = endpoints
        self._find_recorded = recorded

    def title(self, _: Translate, action: str) -> str:
        """What was done; empty for an action of a plugin that is no longer loaded."""
        title = self._titles.get(action)
        return titled(_, title) if title is not None else ""

    @cached_property
    def _titles(self) -> Mapping[str, Title]:
        found: dict[str, Title] = {}
        for declared in self._find_recorded():
            found.update(declared)
        for endpoint in self._find_endpoints():
            if endpoint.audited is not None:
                found[f"{endpoint.area}.{endpoint.name}"] = endpoint.audited
        for page in self._find_pages():
            if page.title is not None:
                found[page.name] = page.title
        return found
