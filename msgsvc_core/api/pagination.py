"""Cursors of lists: opaque to the client, the last id of the page to us."""

import base64
import binascii

from msgsvc_core.errors import BadRequest


def next_cursor(last_id: str) -> str:
    """The cursor that continues after `last_id`."""
    return base64.urlsafe_b64encode(last_id.encode()).decode().rstrip("=")


def after_cursor(cursor: str | None) -> str | None:
    """The id after which the page begins. Raises `BadRequest` for a cursor that is not ours."""
    if cursor is None:
        return None
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
    except (binascii.Error, UnicodeError, ValueError):
        text = ""
    if not text.replace("_", "").isalnum():
        raise BadRequest("cursor: not one that this service gave")
    return text
