"""Declares the pages of an area.

    pages = Pages("helpdesk", package="msgsvc_helpdesk.dashboard")

    @pages.get(
        "/tickets",
        access="customers:read",
        nav=Nav("Tickets", icon="ticket", group="people", order=10),
    )
    async def tickets(page: PageContext) -> Render:
        return Render("tickets.html", {"tickets": ...})

    @pages.post("/tickets/{ticket_id}/reply", access="customers:write", form_page=ticket)
    async def reply(page: PageContext) -> Redirect: ...

A handler's argument `page` is the request: path parameters are in `page.params["ticket_id"]`, the query
string in `page.query`. Other arguments are objects of the service, by their type:
`async def tickets(page: PageContext, inbox: Inbox) -> Render`; a type that nothing provides is an error at
start. Paths are relative to `/dashboard/projects/{project_id}`; with the access `installation:operate` to
`/dashboard/operator`, with `account:self` to `/dashboard/account`. Templates are in `templates/` of the
package, stylesheets and scripts in `static/`. A GET reads. A POST writes in one transaction, is protected
against CSRF, and is recorded in the audit log as `<area>.<handler>`.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, TypeVar

from msgsvc_core.dashboard.access import Access
from msgsvc_core.dashboard.answers import Result
from msgsvc_core.dashboard.context import PageContext
from msgsvc_core.dashboard.overview_parts import EventChart, EventTile, Figure, FirstStep, Problem
from msgsvc_core.dashboard.searching import Hit
from msgsvc_core.kernel.i18n import Title
from msgsvc_core.kernel.providers import Providers, provided_kinds, takes

Handler = Callable[..., Awaitable[Result]]
BoundHandler = Callable[[PageContext], Awaitable[Result]]

#: Types of path parameters, which are never provided as objects.
_PLAIN = frozenset({str, int, float, bool, Any})

_GIVEN = frozenset({"page"})


def _bound(providers: Providers, handler: Callable[..., Any]) -> Callable[..., Any]:
    """Raises `NotProvided`, and `TypeError` for a handler with a path parameter as an argument."""
    if not takes(handler, "page") or _PLAIN.intersection(provided_kinds(handler, _GIVEN)):
        name = getattr(handler, "__name__", repr(handler))
        raise TypeError(
            f"{name}: a handler takes `page`, and objects by their type; parts of its path are in page.params"
        )
    return providers.bind(handler, _GIVEN)


F = TypeVar("F", bound=Callable[..., Awaitable[Any]])
TellingFigures = TypeVar("TellingFigures", bound=Callable[..., Awaitable[Sequence[Figure]]])
TellingProblems = TypeVar("TellingProblems", bound=Callable[..., Awaitable[Sequence[Problem]]])
Finding = TypeVar("Finding", bound=Callable[..., Awaitable[Sequence[Hit]]])

#: The groups of the navigation, from the top.
Group = Literal["overview", "people", "sending", "sign_in", "intake", "developers", "project"]


@dataclass(frozen=True, slots=True)
class Nav:
    """An entry of the navigation. `title` is English, in the plugin's texts; `icon` one of `icons.html`."""

    title: str
    icon: str
    group: Group
    order: int = 100
    #: Paths of other pages that belong to it, e.g. `/new-template`.
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """One method and path of the dashboard."""

    area: str
    method: Literal["GET", "POST"]
    path: str
    access: Access
    handler: Handler
    nav: Nav | None = None
    form_page: Handler | None = None
    holds_connection: bool = True
    #: Maximum bytes of a body with files; None if it accepts none.
    upload_bytes: int | None = None
    #: A POST that changes nothing, used because its input is too long for a URL.
    read_only: bool = False
    #: What the audit log calls the change, with the owner's texts.
    title: Title | None = None
    #: The handlers with their objects filled in; set by `bound`.
    show: BoundHandler | None = None
    show_form: BoundHandler | None = None

    def bound(self, providers: Providers) -> "Page":
        """The page with its handlers' objects filled in. Raises `NotProvided`."""
        form = None if self.form_page is None else _bound(providers, self.form_page)
        return replace(self, show=_bound(providers, self.handler), show_form=form)

    @property
    def name(self) -> str:
        """E.g. `helpdesk.reply`, as in the audit log."""
        return f"{self.area}.{getattr(self.handler, '__name__', '')}"


@dataclass(frozen=True, slots=True)
class Card:
    """A part of the overview: a fragment with its own heading."""

    area: str
    access: Access
    handler: Handler
    order: int
    wide: bool
    show: BoundHandler | None = None

    def bound(self, providers: Providers) -> "Card":
        """The card with its handler's objects filled in. Raises `NotProvided`."""
        return replace(self, show=_bound(providers, self.handler))


T = TypeVar("T", Figure, Problem, Hit)


@dataclass(frozen=True, slots=True)
class Contribution(Generic[T]):
    """Figures or problems of the overview, or hits of a search, that an area contributes."""

    access: Access
    handler: Callable[..., Awaitable[Sequence[T]]]
    order: int
    show: Callable[[PageContext], Awaitable[Sequence[T]]] | None = None

    def bound(self, providers: Providers) -> "Contribution[T]":
        """The same with its handler's objects filled in. Raises `NotProvided`."""
        return replace(self, show=_bound(providers, self.handler))


@dataclass(slots=True)
class Pages:
    """The pages of one area, e.g. `helpdesk`, and the package with their `templates/`."""

    area: str
    package: str
    #: Names of files in `static/` that every page of the area includes.
    styles: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()
    pages: list[Page] = field(default_factory=list)
    cards: list[Card] = field(default_factory=list)
    figure_sources: list[Contribution[Figure]] = field(default_factory=list)
    problem_sources: list[Contribution[Problem]] = field(default_factory=list)
    hit_sources: list[Contribution[Hit]] = field(default_factory=list)
    #: Counts of events that the overview shows by period.
    tiles: list[EventTile] = field(default_factory=list)
    charts: list[EventChart] = field(default_factory=list)
    #: What a new project does first, after the steps of the dashboard's own.
    first_steps: list[FirstStep] = field(default_factory=list)

    def bound(self, providers: Providers) -> "Pages":
        """The pages with their handlers' objects filled in. Raises `NotProvided`."""
        return replace(
            self,
            pages=[page.bound(providers) for page in self.pages],
            cards=[card.bound(providers) for card in self.cards],
            figure_sources=[source.bound(providers) for source in self.figure_sources],
            problem_sources=[source.bound(providers) for source in self.problem_sources],
            hit_sources=[source.bound(providers) for source in self.hit_sources],
        )

    def get(
        self, path: str, *, access: Access, nav: Nav | None = None, holds_connection: bool = True
    ) -> Callable[[F], F]:
        """Declares a page, or a fragment of one."""

        def declare(handler: F) -> F:
            self.pages.append(
                Page(
                    self.area,
                    "GET",
                    path,
                    access,
                    handler,
                    nav=nav,
                    holds_connection=holds_connection,
                )
            )
            return handler

        return declare

    def post(
        self,
        path: str,
        *,
        access: Access,
        form_page: Handler | None = None,
        holds_connection: bool = True,
        upload_bytes: int | None = None,
        read_only: bool = False,
        title: Title | None = None,
    ) -> Callable[[F], F]:
        """Declares a change. `form_page` is rendered again if the change is rejected, `title` is what the
        audit log calls it: `lambda _: _("Ticket answered")`.

        A `read_only` one changes nothing, e.g. a preview of a long text: it uses a reading connection like a
        GET, and is not audited. Raises ValueError for any other without a title.
        """
        if title is None and not read_only:
            raise ValueError(
                f"POST {path} changes something, so it needs a `title` for the audit log"
            )

        def declare(handler: F) -> F:
            self.pages.append(
                Page(
                    self.area,
                    "POST",
                    path,
                    access,
                    handler,
                    form_page=form_page,
                    holds_connection=holds_connection,
                    upload_bytes=upload_bytes,
                    read_only=read_only,
                    title=title,
                )
            )
            return handler

        return declare

    def card(
        self, *, access: Access = "customers:read", order: int = 100, wide: bool = False
    ) -> Callable[[F], F]:
        """Declares a part of the overview."""

        def declare(handler: F) -> F:
            self.cards.append(Card(self.area, access, handler, order, wide))
            return handler

        return declare

    def figures(
        self, *, access: Access = "customers:read", order: int = 100
    ) -> Callable[[TellingFigures], TellingFigures]:
        """Declares figures of the overview: the handler returns a sequence of `Figure`."""

        def declare(handler: TellingFigures) -> TellingFigures:
            self.figure_sources.append(Contribution(access, handler, order))
            return handler

        return declare

    def problems(
        self, *, access: Access = "project:read", order: int = 100
    ) -> Callable[[TellingProblems], TellingProblems]:
        """Declares problems of the overview: the handler returns a sequence of `Problem`.

        They are asked for with every view of the overview, so each must be found by an index.
        """

        def declare(handler: TellingProblems) -> TellingProblems:
            self.problem_sources.append(Contribution(access, handler, order))
            return handler

        return declare

    def search(
        self, *, access: Access = "project:read", order: int = 100
    ) -> Callable[[Finding], Finding]:
        """Declares what a search of the project finds: the handler returns a sequence of `Hit` for
        `page.searched`.

        It is called while somebody types, so each hit must be found by an index; five of a kind are enough.
        """

        def declare(handler: Finding) -> Finding:
            self.hit_sources.append(Contribution(access, handler, order))
            return handler

        return declare
