"""Webhooks on the overview: how many fail, and which."""

from collections.abc import Sequence

from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.dashboard import Figure, PageContext, Problem
from msgsvc_webhooks.dashboard.pages import pages
from msgsvc_webhooks.models import Webhook
from msgsvc_webhooks.service import Webhooks


@pages.figures(access="project:read", order=50)
async def webhook_figures(page: PageContext, webhooks: Webhooks) -> Sequence[Figure]:
    """None for a project without webhooks."""
    found = await _all(page, webhooks)
    if not found:
        return ()
    failing = sum(_is_failing(each) for each in found)
    _ = page._
    return [
        Figure(
            _("Failing webhooks"),
            failing,
            note=_("of {count}", count=len(found)),
            tone="bad" if failing else "",
            url=page.url("/webhooks"),
        )
    ]


@pages.problems(access="project:read", order=50)
async def webhook_problems(page: PageContext, webhooks: Webhooks) -> Sequence[Problem]:
    """Webhooks that the service has disabled, or whose attempts fail."""
    return [_problem(page, each) for each in await _all(page, webhooks) if _is_failing(each)]


async def _all(page: PageContext, webhooks: Webhooks) -> list[Webhook]:
    return await webhooks.page(page.tx, page.project_id, None, PageQuery(limit=100).fetch_limit)


def _is_failing(webhook: Webhook) -> bool:
    if webhook.status == "disabled":
        return webhook.disabled_reason is not None
    return webhook.failing_since_ms is not None


def _problem(page: PageContext, webhook: Webhook) -> Problem:
    _ = page._
    is_off = webhook.status == "disabled"
    return Problem(
        _("A webhook was disabled because it failed.") if is_off else _("A webhook is failing."),
        webhook.url,
        "bad" if is_off else "warn",
        page.url(f"/webhooks/{webhook.webhook_id}"),
        _("Show"),
    )
