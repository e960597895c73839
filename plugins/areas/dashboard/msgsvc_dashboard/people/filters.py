"""Parses the filters of a list from its query string."""

from datetime import date, datetime, time
from typing import TypeVar

from pydantic import BaseModel

from msgsvc_core.api.validation import validate
from msgsvc_core.dashboard import PageContext
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.errors import ApiError, ValidationFailed

Q = TypeVar("Q", bound=BaseModel)


def read_filters(page: PageContext, model: type[Q], *names: str) -> tuple[Q, ApiError | None]:
    """The query of a list from those of its fields that are in the URL, and what is wrong with it.

    If it is invalid, the list is not filtered, and the page shows the error.
    """
    given = {name: text for name in names if (text := page.query.get(name, "").strip())}
    if "cursor" in page.query:
        given["cursor"] = page.query["cursor"]
    try:
        if "created_after" in given:
            given["created_after"] = _begin_of_day(page, given["created_after"])
        return validate(model, given, whole="query", languages=page.languages), None
    except ApiError as error:
        return validate(model, {}), error


def older(page: PageContext, path: str, cursor: str | None, *names: str) -> str:
    """The URL of the next page, with the same filters; empty if there is none."""
    if cursor is None:
        return ""
    return page.url(path, **{name: page.query.get(name, "") for name in names}, cursor=cursor)


def _begin_of_day(page: PageContext, day: str) -> str:
    """A day as `<input type="date">` names it, as the moment in which it begins for its reader."""
    try:
        begun = datetime.combine(date.fromisoformat(day), time(), page.timezone)
        return to_rfc3339(int(begun.timestamp() * 1000))
    except (ValueError, OverflowError):
        raise ValidationFailed("must be a day, as 2026-11-21", field="created_after") from None
