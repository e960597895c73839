"""Attachments, from memory."""

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgsvc_core.channels.context import MediaFile
from msgsvc_core.config.sections import MediaSettings
from msgsvc_core.content.file_types import HEAD_BYTES, mime_type_of, name_of, problem_of
from msgsvc_core.content.outgoing import Media
from msgsvc_core.files.media import MediaFiles, invalid, unavailable
from msgsvc_core.kernel.clock import Clock
from msgsvc_devkit.clock import FakeClock
from msgsvc_devkit.fakes.files import FakeFiles


class FakeMedia(MediaFiles):
    """`contents` are the available files, by URL, in addition to those of `files`; other hosts are
    unreachable."""

    def __init__(self, *, clock: Clock | None = None, files: FakeFiles | None = None) -> None:
        clock = clock or FakeClock()
        self.contents: dict[str, bytes] = {}
        self._fake_files = files or FakeFiles(clock=clock)
        super().__init__(clock=clock, settings=MediaSettings(), files=self._fake_files)

    @asynccontextmanager
    async def fetch(self, media: Media) -> AsyncIterator[MediaFile]:
        content = await self._content(media)
        yield MediaFile(
            io.BytesIO(content), name_of(media), mime_type_of(content[:HEAD_BYTES]), len(content)
        )

    async def inspect(self, media: Media) -> None:
        await self._content(media)

    async def close(self) -> None:
        """Nothing is open."""

    async def _content(self, media: Media) -> bytes:
        if self._fake_files.is_own_address(media.url):
            content = self._fake_files.contents[(await self._stored(media)).file_id]
        elif media.url in self.contents:
            content = self.contents[media.url]
        else:
            raise unavailable("its host could not be reached")
        if problem := problem_of(media, content[:HEAD_BYTES]):
            raise invalid(problem)
        return content
