"""What entries of the audit log are about: what the log is filtered by, and the pages they lead to."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from string import Formatter
from urllib.parse import quote

from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.dashboard import Page, PageContext
from msgsvc_core.kernel.i18n import Title, Translate, package_of
from msgsvc_dashboard.accounts.models import AuditEntry

#: What the log is filtered by: the first parts of the actions of pages, of endpoints and of commands.
Parts = tuple[str, ...]

_DASHBOARD = "msgsvc_dashboard"

#: Those of the core and of this plugin, by name.
OWN: Mapping[str, Parts] = {
    "subscribers": ("subscribers", "tags", "permissions"),
    "messages": ("messages", "templates", "routes", "broadcast"),
    "developers": ("developers", "key", "channels"),
    "team": ("team", "members", "member", "account"),
    "project": ("project", "views"),
}


def titles(_: Translate) -> Mapping[str, str]:
    """What each of `OWN` is called."""
    return {
        "subscribers": _("Subscribers"),
        "messages": _("Messages"),
        "developers": _("Developers"),
        "team": _("Team"),
        "project": _("Project"),
    }


class AuditSubjects:
    """The page of what a change was about: its path names the same things as the change's."""

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
                parts = zip(_parameters(shown.path), values, strict=False)
                return page.url(
                    shown.path.format_map({name: quote(each, safe="") for name, each in parts})
                )
        return ""

    def areas(self, _: Translate) -> Mapping[str, str]:
        """What each area by which the log is filtered is called, in the order of their titles. A plugin is
        called as its first entry in the navigation."""
        plugins = {
            page.area: _[package](page.nav.title)
            for package, page in self._entries.items()
            if page.nav is not None
        }
        named = {**titles(_), **plugins}
        return dict(sorted(named.items(), key=lambda each: each[1].casefold()))

    def actions_of(self, name: str | None) -> Parts:
        """The first parts of the actions of an area; empty for all."""
        if name is None or name in OWN:
            return OWN.get(name or "", ())
        found = [package for package, page in self._entries.items() if page.area == name]
        return self._parts[found[0]] if found else ()

    @cached_property
    def _entries(self) -> Mapping[str, Page]:
        """The first page in the navigation of a project of each other plugin, by its package."""
        listed = [
            (page.nav.order, page)
            for page in self._find_pages()
            if page.nav is not None and page.access != "installation:operate"
        ]
        found: dict[str, Page] = {}
        for _order, page in sorted(listed, key=lambda each: each[0]):
            found.setdefault(package_of(page.handler), page)
        return {package: page for package, page in found.items() if package != _DASHBOARD}

    @cached_property
    def _parts(self) -> Mapping[str, Parts]:
        """The first parts of the actions of each plugin, by its package."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for page in self._find_pages():
            found[package_of(page.handler)].add(page.area)
        for endpoint in self._find_endpoints():
            found[package_of(endpoint.handler)].add(endpoint.area)
        for declared in self._find_recorded():
            for action, title in declared.items():
                found[package_of(title)].add(action.partition(".")[0])
        return {package: tuple(sorted(parts)) for package, parts in found.items()}

    @cached_property
    def _shown(self) -> Mapping[tuple[str, ...], Page]:
        """The pages that show one thing, by what their paths name."""
        return {
            _things(page.path): page
            for page in self._find_pages()
            if page.method == "GET"
            and page.path.endswith("}")
            and page.access not in {"account:self", "installation:operate"}
        }

    @cached_property
    def _names(self) -> Mapping[str, tuple[str, ...]]:
        """What each change names that leaves something to look at."""
        pages = {
            each.name: _things(each.path)
            for each in self._find_pages()
            if each.method == "POST" and not each.path.endswith("/delete")
        }
        endpoints = self._find_endpoints()
        made = {
            path: _things(each.path)
            for each in endpoints
            if (path := each.path.rpartition("/{")[0]) and each.method == "GET"
        }
        called = {
            f"{each.area}.{each.name}": _things(each.path) or made.get(each.path, ())
            for each in endpoints
            if each.audited and each.method != "DELETE"
        }
        return {**pages, **called}


def _things(path: str) -> tuple[str, ...]:
    """What the parameters of a path name: `ticket_id`, or of a key the collection, as `tags` for `{tag}`."""
    return tuple(
        name if name.endswith("_id") else before.rpartition("/")[0].rpartition("/")[2]
        for before, name, _, _ in Formatter().parse(path)
        if name
    )


def _parameters(path: str) -> tuple[str, ...]:
    return tuple(name for _, name, _, _ in Formatter().parse(path) if name)
