"""What stands beside `plugin = "letterbox"` in `[channels.<name>]`."""

from pathlib import Path

from pydantic import Field

from msgsvc_core.config.sections import Section


class LetterboxSettings(Section):
    """One letterbox. Two channels need two folders."""

    folder: Path = Field(description="Holds the folders `outbox`, `answers` and `inbox`.")
    poll_s: float = Field(0.2, gt=0, description="Seconds between looks into the inbox.")
