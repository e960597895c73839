"""What `msgsvc doctor` found: a finding of its own checks, or of a plugin (hook `review_settings`)."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `fix` says what to do where it isn't well."""

    level: Level
    subject: str
    text: str
    fix: str = ""


def ok(subject: str, text: str) -> Finding:
    """All is well."""
    return Finding("ok", subject, text)


def warning(subject: str, text: str, fix: str) -> Finding:
    """It works, and somebody will wish that it were otherwise."""
    return Finding("warning", subject, text, fix)


def problem(subject: str, text: str, fix: str) -> Finding:
    """It doesn't work."""
    return Finding("problem", subject, text, fix)
