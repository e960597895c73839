"""Strictly validates the contents and parameters of the bot's calls."""

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from msgsvc_devkit.platforms.matrix.html import read_html
from msgsvc_devkit.platforms.matrix.refusals import Refused, malformed, wrong_parameter

#: Bytes of an event, with what the homeserver adds to it ("Size limits").
MAX_EVENT_BYTES, ADDED_BYTES = 65_536, 1_000

FILES = frozenset({"m.image", "m.video", "m.audio", "m.file"})

_MXC = re.compile(r"mxc://[^/\s]+/[A-Za-z0-9_-]+")


def query_of(given: Mapping[str, str], known: Collection[str]) -> Mapping[str, str]:
    """The parameters of a call. Raises `Refused`."""
    for name in given:
        if name not in known:
            raise wrong_parameter(f"{name}: no such parameter")
    return given


def object_of(value: Any, known: Collection[str], where: str = "body") -> dict[str, Any]:
    """A JSON object without other fields."""
    if not isinstance(value, dict):
        raise malformed(f"{where}: must be an object")
    for name in value:
        if name not in known:
            raise malformed(f"{where}.{name}: no such field")
    return value


def message_content(value: Any, files: Collection[str]) -> dict[str, Any]:
    """The content of an `m.room.message`. `files` are the URIs of files that were uploaded."""
    if not isinstance(value, dict):
        raise malformed("content: must be an object")
    size = len(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    if size > MAX_EVENT_BYTES - ADDED_BYTES:
        raise Refused(413, "M_TOO_LARGE", "event too large")
    relates = value.get("m.relates_to")
    if relates is None:
        _check_message(value, files, "content")
        return value
    _check_message(
        {
            name: part
            for name, part in value.items()
            if name not in {"m.relates_to", "m.new_content"}
        },
        files,
        "content",
    )
    object_of(relates, {"rel_type", "event_id"}, "m.relates_to")
    if relates.get("rel_type") != "m.replace" or not str(relates.get("event_id")).startswith("$"):
        raise malformed("m.relates_to: the fake knows m.replace alone")
    _check_message(value.get("m.new_content"), files, "m.new_content")
    return value


def sync_filter(text: str) -> dict[str, Any]:
    """A filter of `/sync`, as JSON."""
    try:
        value = json.loads(text)
    except ValueError:
        raise wrong_parameter("filter: must be JSON") from None
    event_keys = {"limit", "types", "not_types", "senders", "not_senders"}
    found = object_of(value, {"presence", "account_data", "room", "event_fields"}, "filter")
    for name in ("presence", "account_data"):
        object_of(found.get(name, {}), event_keys, name)
    room = object_of(
        found.get("room", {}),
        {"timeline", "state", "ephemeral", "account_data", "include_leave", "rooms", "not_rooms"},
        "room",
    )
    for name in ("timeline", "state", "ephemeral", "account_data"):
        room_filter(room.get(name, {}))
    return found


def room_filter(value: Any) -> dict[str, Any]:
    """A RoomEventFilter."""
    known = {"limit", "types", "not_types", "senders", "not_senders", "lazy_load_members"}
    found = object_of(value, known, "filter")
    for name in ("types", "not_types"):
        if not isinstance(found.get(name, []), list):
            raise wrong_parameter(f"{name}: must be a list")
    return found


def passes(kind: str, wanted: Mapping[str, Any]) -> bool:
    """Whether an event of that type passes a filter; `*` stands for any text."""

    def among(patterns: Any) -> bool:
        return any(
            re.fullmatch(re.escape(one).replace(r"\*", ".*"), kind) is not None for one in patterns
        )

    types = wanted.get("types")
    return (types is None or among(types)) and not among(wanted.get("not_types", ()))


def number_in(query: Mapping[str, str], name: str, default: int, most: int) -> int:
    value = query.get(name, str(default))
    if not re.fullmatch(r"\d{1,9}", value) or int(value) > most:
        raise wrong_parameter(f"{name}: must be a number of 0-{most}")
    return int(value)


def _check_message(value: Any, files: Collection[str], where: str) -> None:
    known = {"msgtype", "body", "format", "formatted_body", "url", "filename", "info", "m.mentions"}
    content = object_of(value, known, where)
    kind, body = content.get("msgtype"), content.get("body")
    if not isinstance(body, str):
        raise malformed(f"{where}.body: must be a text")
    if ("format" in content) != ("formatted_body" in content):
        raise malformed(f"{where}: format and formatted_body go together")
    if "format" in content:
        if content["format"] != "org.matrix.custom.html":
            raise malformed(f"{where}.format: unknown")
        read_html(content["formatted_body"])
    if kind in FILES:
        url = content.get("url")
        if not isinstance(url, str) or not _MXC.fullmatch(url) or url not in files:
            raise malformed(f"{where}.url: must be an mxc URI of a file that is here")
        info = object_of(
            content.get("info", {}), {"mimetype", "size", "w", "h", "duration"}, "info"
        )
        if not isinstance(info.get("size", 0), int):
            raise malformed("info.size: must be a number")
    elif kind not in {"m.text", "m.notice", "m.emote"}:
        raise malformed(f"{where}.msgtype: unknown")
    elif {"url", "filename", "info"} & content.keys():
        raise malformed(f"{where}: a text has no file")
