"""Maps people's language tags again after the setting `languages` has changed."""

from collections.abc import Sequence
from functools import partial

from msgsvc_core.db import Tx
from msgsvc_core.jobs import Job, JobContext, JobSpec
from msgsvc_core.jobs.steps import in_steps
from msgsvc_core.kernel.i18n import closest
from msgsvc_core.subscribers import store

#: Seconds between two runs. Without a change, a run reads one row of an index per tag that people have.
EVERY_S = 300.0

#: Tags that one transaction looks at.
AT_ONCE = 200


class LanguageMapping:
    """The job. People whose tag matches none of `languages` keep the language that they have."""

    def __init__(self, *, languages: Sequence[str]) -> None:
        self._languages = languages

    @property
    def spec(self) -> JobSpec:
        return JobSpec("subscribers.languages", self.map, every_s=EVERY_S)

    async def map(self, ctx: JobContext, _jobs: Sequence[Job]) -> None:
        after: tuple[str, str] | None = ("", "")
        while after is not None and not ctx.stopping:
            async with ctx.reading() as tx:
                changes, after = await self._next(tx, after)
            for locale, before, lang in changes:
                await in_steps(ctx, partial(_map, locale, before, lang))

    async def _next(
        self, tx: Tx, after: tuple[str, str]
    ) -> tuple[list[tuple[str, str, str]], tuple[str, str] | None]:
        """Which tags and languages of the next ones have to change, to what; and how far that is."""
        changes: list[tuple[str, str, str]] = []
        for _ in range(AT_ONCE):
            found = await store.next_locale(tx, after)
            if found is None:
                return changes, None
            after = found
            lang = closest(after[0], self._languages)
            if lang is not None and lang != after[1]:
                changes.append((*after, lang))
        return changes, after


async def _map(locale: str, before: str, lang: str, tx: Tx, limit: int) -> int:
    return await store.map_locale(tx, locale, before, lang, limit)
