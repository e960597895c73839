"""The part of files: those that users send, and those of messages."""

from collections.abc import Sequence
from typing import Any

from pluggy import HookRelay

from msgsvc_core.channels import Channels
from msgsvc_core.channels.context import MediaSource, StoredFiles
from msgsvc_core.config.settings import Settings
from msgsvc_core.db import Database
from msgsvc_core.files.fetching import LANES, SEALED, FileFetcher
from msgsvc_core.files.media import MediaFiles
from msgsvc_core.files.pages import file_routes
from msgsvc_core.files.personal_data import PERSONAL_DATA
from msgsvc_core.files.purging import FilePurge, erase_files
from msgsvc_core.files.routes import router
from msgsvc_core.files.service import Files
from msgsvc_core.jobs import JobQueue
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.hooks import in_order
from msgsvc_core.parts import Built, Part
from msgsvc_core.security import SecretBox


def _files(
    *, clock: Clock, db: Database, secrets: SecretBox, settings: Settings, jobs: JobQueue
) -> Built:
    files = Files(
        clock=clock,
        db=db,
        secrets=secrets,
        settings=settings.media,
        jobs=jobs,
        base_url=settings.base_url,
    )
    media = MediaFiles(clock=clock, settings=settings.media, files=files)
    return Built(provides=[files, media], provides_as={StoredFiles: files, MediaSource: media})


def _jobs(
    *,
    clock: Clock,
    secrets: SecretBox,
    settings: Settings,
    hook: HookRelay,
    channels: Channels,
) -> Built:
    fetcher = FileFetcher(
        clock=clock,
        secrets=secrets,
        settings=settings.media,
        channels=channels,
        on_fetched=in_order(hook.on_file_fetched),
    )
    purge = FilePurge(clock=clock, loose_hours=settings.media.loose_hours)
    return Built(provides=[fetcher], jobs=lambda: [fetcher.spec, purge.spec], lanes=lambda: [LANES])


def _pages(*, files: Files) -> Sequence[Any]:
    return file_routes(files)


PART = Part(
    build=[_files, _jobs],
    endpoints=router.endpoints,
    sealed=[SEALED],
    personal_data=PERSONAL_DATA,
    erasers=[erase_files],
    pages=[_pages],
)
