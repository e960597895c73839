"""The entries that lead to pages, for whom they are there to open."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from msgsvc_core.dashboard import Page, PageContext
from msgsvc_core.dashboard.declared import Group
from msgsvc_core.texts import Translate
from msgsvc_dashboard.frame.addresses import ROOT, path_of

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


@dataclass(frozen=True, slots=True)
class Entry:
    """A link; `here` is the value of its `aria-current`, empty elsewhere."""

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
        titles = _titles(context._)
        if context.project is not None:
            for name in GROUPS:
                entries = self._entries(context, path, _of_group(name))
                if entries:
                    found.append(EntryGroup(name, titles[name], entries))
        else:
            found.append(EntryGroup("account", "", self.of_account(context, path)))
        if context.account.is_operator:
            entries = self._entries(context, path, lambda page: page.access == "operate")
            if entries:
                found.append(EntryGroup("operator", titles["operator"], entries))
        return found

    def of_account(self, context: PageContext, path: str) -> list[Entry]:
        """The pages of whoever is signed in."""
        return self._entries(context, path, lambda page: page.access == "self")

    def _entries(
        self, context: PageContext, path: str, wanted: Callable[[Page], bool]
    ) -> list[Entry]:
        shown = [page for page in self._pages if wanted(page) and context.may(page.access)]
        urls = [_url(context, page) for page in shown]
        here = max((url for url in urls if _covers(url, path, context)), key=len, default=None)
        return [
            Entry(
                title=context._(page.nav.title) if page.nav else "",
                icon=page.nav.icon if page.nav else "",
                url=url,
                here="" if url != here else ("page" if url == path else "true"),
            )
            for page, url in zip(shown, urls, strict=True)
        ]


def _of_group(name: Group) -> Callable[[Page], bool]:
    def wanted(page: Page) -> bool:
        in_project = page.access not in {"operate", "self"}
        return in_project and page.nav is not None and page.nav.group == name

    return wanted


def _url(context: PageContext, page: Page) -> str:
    project_id = context.project.project_id if context.project else ""
    return context.root + path_of(page).removeprefix(ROOT).replace("{project_id}", project_id)


def _covers(url: str, path: str, context: PageContext) -> bool:
    """Whether an entry's page, or one below it, is at `path`; the overview has nothing below it."""
    beginnings = {f"{context.root}/account", f"{context.root}/operator"}
    if context.project is not None:
        beginnings.add(f"{context.root}/projects/{context.project.project_id}")
    return url == path or (url not in beginnings and path.startswith(f"{url}/"))


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
