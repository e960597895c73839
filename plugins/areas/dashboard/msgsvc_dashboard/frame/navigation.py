"""The entries of the navigation that the viewer may open."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from msgsvc_core.dashboard import Hit, Page, PageContext
from msgsvc_core.dashboard.declared import Group
from msgsvc_core.kernel.i18n import Translate, package_of
from msgsvc_dashboard.frame.addresses import ROOT, beside

#: The groups of a project's pages, from the top.
GROUPS: tuple[Group, ...] = (
    "overview",
    "people",
    "sending",
    "sign_in",
    "intake",
    "developers",
    "project",
)


#: Pages that a search offers.
MOST_FOUND = 6


@dataclass(frozen=True, slots=True)
class Entry:
    """A link; `here` is the value of its `aria-current`, or empty."""

    title: str
    icon: str
    url: str
    here: Literal["", "page", "true"]


@dataclass(frozen=True, slots=True)
class EntryGroup:
    name: str
    title: str
    entries: Sequence[Entry]


class Navigation:
    """All entries of all areas."""

    def __init__(self, pages: Sequence[Page]) -> None:
        named = [(page.nav.order, page.nav.title, page) for page in pages if page.nav is not None]
        self._pages = [page for _, _, page in sorted(named, key=lambda each: each[:2])]

    def groups(self, context: PageContext, path: str) -> list[EntryGroup]:
        """What somebody may open from here, in groups; `path` is where they are."""
        found = []
        titles = _titles(context._[__name__])
        if context.project is not None:
            for name in GROUPS:
                entries = self._entries(context, path, _of_group(name))
                if entries:
                    found.append(EntryGroup(name, titles[name], entries))
        else:
            found.append(EntryGroup("account", "", self.of_account(context, path)))
        if context.viewer.is_operator:
            entries = self._entries(
                context, path, lambda page: page.access == "installation:operate"
            )
            if entries:
                found.append(EntryGroup("operator", titles["operator"], entries))
        return found

    def above(self, context: PageContext, path: str) -> Entry | None:
        """The entry that a page is below, if it is not an entry itself."""
        groups = self.groups(context, path)
        entries = [entry for group in groups for entry in group.entries]
        entries += self.of_account(context, path)
        return next((entry for entry in entries if entry.here == "true"), None)

    def of_account(self, context: PageContext, path: str) -> list[Entry]:
        """The pages of whoever is signed in."""
        return self._entries(context, path, lambda page: page.access == "account:self")

    def search(self, context: PageContext, text: str) -> list[Hit]:
        """The pages that somebody may open, of whose title and group words begin with those of `text`."""
        kind = context._[__name__]("Pages")
        entries = [
            (group.title, entry)
            for group in [
                *self.groups(context, ""),
                EntryGroup("", "", self.of_account(context, "")),
            ]
            for entry in group.entries
        ]
        return [
            Hit(kind, entry.title, entry.url, detail=title, icon=entry.icon)
            for title, entry in entries
            if _begins(text, f"{entry.title} {title}")
        ][:MOST_FOUND]

    def _entries(
        self, context: PageContext, path: str, wanted: Callable[[Page], bool]
    ) -> list[Entry]:
        shown = [page for page in self._pages if wanted(page) and context.may(page.access)]
        nearest = [_nearest(context, page, path) for page in shown]
        # Of an entry, and one whose page is below it, the one below.
        longest = max(nearest, default=0)
        urls = [_url(context, page, page.path) for page in shown]
        return [
            Entry(
                title=context._[package_of(page.handler)](page.nav.title) if page.nav else "",
                icon=page.nav.icon if page.nav else "",
                url=url,
                here="" if not near or near < longest else ("page" if url == path else "true"),
            )
            for page, url, near in zip(shown, urls, nearest, strict=True)
        ]


def _begins(text: str, title: str) -> bool:
    words = title.casefold().split()
    return all(any(each.startswith(part) for each in words) for part in text.casefold().split())


def _of_group(name: Group) -> Callable[[Page], bool]:
    def wanted(page: Page) -> bool:
        in_project = page.access not in {"installation:operate", "account:self"}
        return in_project and page.nav is not None and page.nav.group == name

    return wanted


def _url(context: PageContext, page: Page, path: str) -> str:
    """Where a path is that was declared beside that page, for whoever is here."""
    project_id = context.project.project_id if context.project else ""
    return context.root + beside(page, path).removeprefix(ROOT).replace("{project_id}", project_id)


def _nearest(context: PageContext, page: Page, path: str) -> int:
    """How much of `path` is of an entry, whose pages are its own, those below it, and what it has `also`;
    0 for none of it. All of an account is below its page; the overview has nothing below it."""
    has_below = page.path or page.access == "account:self"
    paths = (page.path, *(page.nav.also if page.nav else ()))
    urls = [_url(context, page, each) for each in paths]
    covering = [url for url in urls if url == path or (has_below and path.startswith(f"{url}/"))]
    return max(map(len, covering), default=0)


def _titles(translate: Translate) -> dict[str, str]:
    return {
        "overview": "",
        "people": translate("People"),
        "sending": translate("Sending"),
        "sign_in": translate("Sign-in"),
        "intake": translate("Forms"),
        "developers": translate("Developers"),
        "project": translate("Project"),
        "operator": translate("Installation"),
    }
