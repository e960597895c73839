"""Which resource each parameter of a path names, for tests that fill them in."""

import re

#: Labels of tickets, which are no resources.
_TICKET_TAG = ("/v1/tickets/{ticket_id}/tags/{key}", "/v1/tickets/{ticket_id}/tags/{ticket_tag}")

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

    return _PARAMETER.sub(named, path.replace(*_TICKET_TAG))


def kinds_in(path: str) -> list[str]:
    """The kind of each parameter, in their order."""
    return [match[1] for match in re.finditer(r"{(\w+)}", by_kind(path))]
