"""Which resource each parameter of a path names, for tests that fill them in."""

import re

#: Paths whose parameters name other things than the same ones elsewhere. Labels of tickets are no resources.
_OTHERS = {
    "/v1/tickets/{ticket_id}/tags/{key}": "/v1/tickets/{ticket_id}/tags/{ticket_tag}",
    "/v1/tickets/bulk-actions/{bulk_action_id}": "/v1/tickets/bulk-actions/{ticket_bulk_action_id}",
}

_PARAMETER = re.compile(r"([^/]+)/{(\w+)}")

#: What `{key}` names, by the collection before it.
_KINDS = {
    "canned-answers": "canned_answer",
    "channels": "name",
    "links": "slug",
    "permissions": "permission_key",
    "tags": "tag",
    "templates": "template",
}


def by_kind(path: str) -> str:
    """The path with its keys named after their resources: `/v1/tags/{tag}` for `/v1/tags/{key}`."""

    def named(match: re.Match[str]) -> str:
        collection, name = match.groups()
        return f"{collection}/{{{_KINDS.get(collection, name) if name == 'key' else name}}}"

    for beginning, other in _OTHERS.items():
        path = path.replace(beginning, other)
    return _PARAMETER.sub(named, path)


def kinds_in(path: str) -> list[str]:
    """The kind of each parameter, in their order."""
    return [match[1] for match in re.finditer(r"{(\w+)}", by_kind(path))]
