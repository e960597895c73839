"""What is wrong with the channels and the API keys, and for the operator with the jobs."""

from collections.abc import Sequence

from msgsvc_core.channels.health.problems import ChannelTrouble, ChannelTroubles, TroubleKind
from msgsvc_core.dashboard import PageContext, Problem
from msgsvc_core.jobs import inspection
from msgsvc_core.kernel.clock import DAY_MS, MINUTE_MS
from msgsvc_core.projects.service import Projects
from msgsvc_dashboard.overview.area import pages


@pages.problems(access="project:read", order=0)
async def channel_problems(page: PageContext, troubles: ChannelTroubles) -> Sequence[Problem]:
    """One of each channel that does not work or sends late."""
    found = await troubles.of_project(page.tx, page.project_id)
    return [_problem(page, trouble) for trouble in found]


@pages.problems(access="project:read", order=20)
async def expiring_keys(page: PageContext, projects: Projects) -> Sequence[Problem]:
    """One for all keys that expire soon: each would be refused without another warning."""
    now_ms = page.clock.now_ms()
    listed = await projects.keys_of(page.tx, page.project_id)
    soon = [each.key for each in listed if each.expires_soon(now_ms)]
    if not soon:
        return ()
    next_ms = min(key.expires_at_ms or 0 for key in soon) - now_ms
    _ = page._
    title = _("The API key {name} expires soon.", name=soon[0].name)
    if len(soon) > 1:
        title = _.ngettext(
            "{count} API key expires soon.", "{count} API keys expire soon.", len(soon)
        )
    text = _.ngettext(
        "Put another in place within {count} day; requests with it are refused after that.",
        "Put another in place within {count} days; requests with it are refused after that.",
        max(1, next_ms // DAY_MS),
    )
    return [Problem(title, text, "warn", page.url("/keys"), _("API keys"))]


@pages.problems(access="installation:operate", order=90)
async def dead_letters(page: PageContext) -> Sequence[Problem]:
    """Jobs of any project that failed for good."""
    if not await inspection.has_dead(page.tx):
        return ()
    _ = page._
    return [
        Problem(
            _("Some jobs have failed for good."),
            _("They wait as dead letters to be retried or discarded."),
            "warn",
            page.url("/operator/jobs"),
            _("Jobs"),
        )
    ]


def _problem(page: PageContext, trouble: ChannelTrouble) -> Problem:
    text = trouble.detail
    if trouble.kind == "late":
        text = page._.ngettext(
            "A message has waited for {count} minute.",
            "A message has waited for {count} minutes.",
            trouble.waited_ms // MINUTE_MS,
        )
    elif trouble.kind == "paused":
        text = page._.ngettext(
            "The messenger asked to wait for {count} more minute.",
            "The messenger asked to wait for {count} more minutes.",
            -(-trouble.wait_ms // MINUTE_MS),
        )
    # An outage, a pause and a limit pass by themselves; a channel that only is late works.
    passes = trouble.kind in {"unavailable", "paused", "limited", "late"}
    return Problem(
        _titles(page, trouble.channel)[trouble.kind],
        text,
        "warn" if passes else "bad",
        # Shared channels have no page of their own in a project; the list shows both.
        page.url("/channels"),
        page._("Channels"),
    )


def _titles(page: PageContext, channel: str) -> dict[TroubleKind, str]:
    _ = page._
    return {
        "broken": _("The settings of {channel} can't be read.", channel=channel),
        "stopped": _("{channel} is stopped; messages wait.", channel=channel),
        "unavailable": _(
            "The messenger of {channel} can't be reached; messages wait.", channel=channel
        ),
        "paused": _("{channel} is paused; messages wait.", channel=channel),
        "interrupted": _("{channel} receives nothing.", channel=channel),
        "limited": _("A limit stops messages of {channel}; they fail.", channel=channel),
        "late": _("{channel} sends late.", channel=channel),
    }
