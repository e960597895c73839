"""The size of an audience beside its filters: who gets it, who is left out and why, and the lists of them."""

from collections.abc import Sequence

from msgsvc_core.channels.registry import Channels
from msgsvc_core.dashboard import PageContext
from msgsvc_core.kernel.values import value_object
from msgsvc_core.mailings import Audience
from msgsvc_core.mailings.audience import MOST_BROKEN_DOWN, AudienceBreakdown, LeftOut
from msgsvc_core.mailings.service import Mailings


@value_object
class LeftOutCount:
    """`url` is the list of these people; empty where no filters of it select them."""

    reason: LeftOut
    count: int
    url: str


@value_object
class CountedAudience:
    """`url` is the list of those who get it; empty where no filters of it select them."""

    found: AudienceBreakdown
    left_out: tuple[LeftOutCount, ...]
    url: str
    most: int = MOST_BROKEN_DOWN


async def count(
    page: PageContext,
    mailings: Mailings,
    channels: Channels,
    audience: Audience,
    permission: str | None,
    route_id: str | None = None,
) -> CountedAudience:
    """The audience of a message that needs a `permission`, and goes by a route if one is named. Raises what
    `Mailings.break_down` does."""
    found = await mailings.break_down(
        page.tx, page.project_id, audience, permission, route_id=route_id
    )
    if route_id is not None:
        # Lists are of subscribers, and these are people.
        return CountedAudience(found, (), "")
    known = [channel.name for channel in channels.list_for_project(page.project_id)]
    return CountedAudience(
        found,
        tuple(
            LeftOutCount(reason, number, _left_out_url(page, audience, reason, known))
            for reason, number in found.left_out.items()
        ),
        _reached_url(page, audience, permission),
    )


def _reached_url(page: PageContext, audience: Audience, permission: str | None) -> str:
    needed = sorted({audience.permission, permission} - {None}, key=str)
    channels = audience.channels or []
    if len(needed) > 1 or len(channels) > 1:
        return ""
    return _url(page, audience, status="active", channel=_only(channels), permission=_only(needed))


def _left_out_url(
    page: PageContext, audience: Audience, reason: LeftOut, known: Sequence[str]
) -> str:
    if reason == "channel":
        others = sorted(set(known) - set(audience.channels or ()))
        return _url(page, audience, status="active", channel=others[0]) if len(others) == 1 else ""
    if reason in {"bot", "permission"}:
        # Lists have no filters for them.
        return ""
    return _url(page, audience, status=reason)


def _url(page: PageContext, audience: Audience, **more: str | None) -> str:
    """The list of subscribers by the tag and language of an audience, which takes one of each."""
    tags = [*(audience.tags_any or ()), *(audience.tags_all or ())]
    langs = audience.langs or []
    if len(tags) > 1 or len(langs) > 1 or audience.tags_none or audience.subscriber_ids:
        return ""
    return page.url("/subscribers", tag=_only(tags), lang=_only(langs), **more)


def _only(values: Sequence[str | None]) -> str | None:
    return values[0] if values else None
