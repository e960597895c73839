"""Findings of `msgsvc doctor`: of its own checks, or of a plugin (hook `review_settings`)."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. `fix` says what to do about a warning or a problem."""

    level: Level
    subject: str
    text: str
    fix: str = ""


def ok(subject: str, text: str) -> Finding:
    """The check passed."""
    return Finding("ok", subject, text)


def warning(subject: str, text: str, fix: str) -> Finding:
    """The service works, but something should be changed."""
    return Finding("warning", subject, text, fix)


def problem(subject: str, text: str, fix: str) -> Finding:
    """The service does not work."""
    return Finding("problem", subject, text, fix)
