"""Its pages. What was changed is in `Kept`."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgsvc_core.dashboard import (
    Download,
    Figure,
    Nav,
    PageContext,
    Pages,
    Problem,
    Redirect,
    Render,
)
from msgsvc_core.kernel.errors import Conflict, ValidationFailed
from msgsvc_core.plugins.hookspecs import hookimpl

pages = Pages("sample", package="tests.dashboard.sample")


class Counted(Conflict):
    """Refused, and what was written before stays."""

    keeps_writes = True


@dataclass(slots=True)
class Kept:
    """What handlers have done."""

    done: list[str] = field(default_factory=list)


class SamplePlugin:
    """Declares the pages."""

    @hookimpl
    def register_services(self) -> Mapping[type, Any]:
        return {Kept: Kept()}

    @hookimpl
    def register_dashboard(self) -> Sequence[Pages]:
        return [pages]


@pages.get(
    "/samples",
    access="project:read",
    nav=Nav("Samples", icon="tag", group="people", also=("/sampling",)),
)
async def samples(page: PageContext) -> Render:
    return Render("samples.html", {"text": page.query.get("text", "")})


@pages.get("/samples/deeper", access="project:read")
async def deeper(page: PageContext) -> Render:
    return Render("samples.html", {"text": str(page.member.name if page.member else "nobody")})


@pages.get("/sampling", access="project:read")
async def sampling(page: PageContext) -> Render:
    return Render("samples.html", {"text": "sampling"})


@pages.get("/samples/part", access="customers:read")
async def part(page: PageContext) -> Render:
    return Render("part.html", {"text": page.fragment})


@pages.get("/samples/file", access="project:read", holds_connection=False)
async def file(page: PageContext) -> Download:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"a,b\n"

    return Download(pieces(), filename='Отчёт "1".csv')


@pages.post(
    "/samples",
    access="project:write",
    form_page=samples,
    upload_bytes=1000,
    title=lambda _: _("Sample added"),
)
async def change(page: PageContext, kept: Kept) -> Redirect:
    text = page.form.text("text")
    await page.tx.execute(
        "UPDATE core_projects SET name = :name WHERE project_id = :project_id",
        {"name": text, "project_id": page.project_id},
    )
    if text == "refused":
        raise ValidationFailed("is refused", field="text")
    if text == "counted":
        raise Counted("text: is counted")
    upload = page.form.file("file")
    page.after_commit.append(lambda: kept.done.append(text))
    size = f" ({upload.filename}, {upload.size})" if upload else ""
    return Redirect(page.url("/samples"), notice=f"Changed to {text}{size}.")


@pages.post("/runs", access="installation:operate", title=lambda _: _("Run started"))
async def run(page: PageContext, kept: Kept) -> Redirect:
    kept.done.append(page.viewer.email)
    return Redirect(f"{page.root}/operator/runs")


@pages.get("/runs", access="installation:operate", nav=Nav("Runs", icon="server", group="project"))
async def runs(page: PageContext) -> Render:
    return Render("samples.html", {"text": "runs"})


@pages.card(access="project:read", order=1, wide=True)
async def card(page: PageContext) -> Render:
    return Render("part.html", {"text": "<card>"})


@pages.figures(access="project:read")
async def figures(page: PageContext) -> list[Figure]:
    return [
        Figure("<figure>", 1234.5, note="<note>", tone="bad", url=page.url("/samples")),
        Figure("Share", 0.5, "share"),
        Figure("Nothing", None, "share"),
        Figure("Many", 100, at_least=True),
    ]


@pages.problems(access="project:read")
async def problems(page: PageContext) -> list[Problem]:
    return [
        Problem("<warning>", "less", "warn"),
        Problem("<problem>", "<text>", url=page.url("/samples"), action="<mend>"),
    ]
