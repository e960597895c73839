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


class LanguageMapping:
    """The job. People whose tag matches none of `languages` keep the language that they have."""

    def __init__(self, *, languages: Sequence[str]) -> None:
        self._languages = languages

    @property
    def spec(self) -> JobSpec:
        return JobSpec("subscribers.languages", self.map, every_s=EVERY_S)

    async def map(self, ctx: JobContext, _jobs: Sequence[Job]) -> None:
        found: tuple[str, str] | None = ("", "")
        while found is not None:
            async with ctx.reading() as tx:
                found = await self._next(tx, found)
            if found is not None:
                locale, before = found
                lang = closest(locale, self._languages)
                assert lang is not None
                await in_steps(ctx, partial(_map, locale, before, lang))

    async def _next(self, tx: Tx, after: tuple[str, str]) -> tuple[str, str] | None:
        """The next tag and language that has to change."""
        while (after_this := await store.next_locale(tx, after)) is not None:
            after = after_this
            if closest(after[0], self._languages) not in {None, after[1]}:
                return after
        return None


async def _map(locale: str, before: str, lang: str, tx: Tx, most: int) -> int:
    return await store.map_locale(tx, locale, before, lang, most)
