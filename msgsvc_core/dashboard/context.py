"""The page context passed to handlers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode
from zoneinfo import ZoneInfo

from msgsvc_core.dashboard.access import Access, Viewer, may
from msgsvc_core.dashboard.posted import PostedForm
from msgsvc_core.kernel.errors import NotFound
from msgsvc_core.kernel.i18n import own_name

if TYPE_CHECKING:
    from msgsvc_core.billing import Plan
    from msgsvc_core.db import Tx
    from msgsvc_core.kernel.clock import Clock
    from msgsvc_core.kernel.errors import ApiError
    from msgsvc_core.kernel.i18n import Translate
    from msgsvc_core.members.models import Member, Role
    from msgsvc_core.projects import Project


@dataclass(frozen=True, slots=True)
class PageContext:
    """A page request by a signed-in account with access to the page.

    `tx` reads for GET, and is the one transaction of a POST: an `ApiError` raised by the handler rolls it
    back, and the page named by `form_page` is rendered again with `error` and with `form`, the submitted
    values.
    """

    viewer: Viewer
    #: None for pages outside projects (of the operator and the account), as are `role` and `member`.
    project: "Project | None"
    role: "Role | None"
    #: The viewer's member record in the project; None for an owner without one.
    member: "Member | None"
    plan: "Plan | None"
    lang: str
    #: The languages of texts, from the settings, for forms and for `validate`.
    languages: tuple[str, ...]
    timezone: ZoneInfo
    clock: "Clock"
    _: "Translate"
    params: Mapping[str, str]
    query: Mapping[str, str]
    form: PostedForm
    #: Root path of the dashboard, e.g. `/dashboard`, also below another application.
    root: str
    ip: str
    #: Identifies the viewer's session in this browser.
    session_id: str = ""
    #: The htmx target id for which a fragment is requested; empty for a complete page.
    fragment: str = ""
    error: "ApiError | None" = None
    #: The text that a search is for, without spaces around it; empty elsewhere.
    searched: str = ""
    #: None for a page declared with `holds_connection=False`.
    optional_tx: "Tx | None" = None
    #: Details for the audit log besides the action: ids and names, never secrets or texts.
    noted: dict[str, Any] = field(default_factory=dict)
    #: Called after the commit, with effects that a rollback can't undo.
    after_commit: list[Callable[[], None]] = field(default_factory=list)

    @property
    def tx(self) -> "Tx":
        assert self.optional_tx is not None, "the page is declared with holds_connection=False"
        return self.optional_tx

    @property
    def project_id(self) -> str:
        if self.project is None:
            raise NotFound("this page belongs to no project")
        return self.project.project_id

    def language_choices(self, chosen: str = "") -> list[tuple[str, str]]:
        """The languages for a field, each with its own name; `chosen` is included even if it is no longer
        listed."""
        also = [chosen] if chosen and chosen not in self.languages else []
        return [(tag, own_name(tag)) for tag in (*self.languages, *also)]

    def may(self, access: Access) -> bool:
        """Whether the viewer has that permission here, to decide which links and buttons to show."""
        if access == "installation:operate":
            return self.viewer.is_operator
        return access == "account:self" or may(self.role, access)

    def url(self, path: str, **query: object) -> str:
        """The URL of a page of this project, e.g. `page.url("/tickets", status="open")`.

        Empty values are omitted. Use `quote` for parts of the path that are user input.
        """
        parameters = {name: value for name, value in query.items() if value not in {None, ""}}
        inside = f"/projects/{quote(self.project.project_id)}" if self.project else ""
        return f"{self.root}{inside}{path}" + (f"?{urlencode(parameters)}" if parameters else "")

    def note(self, **detail: object) -> None:
        """Adds details to the audit log record of this change: ids and names, never secrets or texts."""
        self.noted.update(detail)
