"""The section of `CHANGELOG.md` about a version."""

import re

#: `## [0.2.0] - 2027-01-31`, or `## [0.2.0] - not released yet` before.
HEADING = re.compile(
    r"(?m)^## \[(?P<version>[^\]]+)\] - (?P<date>\d{4}-\d\d-\d\d|not released yet)$"
)

_ANY_HEADING = re.compile(r"(?m)^## ")


class NoSection(Exception):
    """The changelog says nothing about the version that is built."""


def section_of(version: str, changelog: str) -> str:
    """What the changelog says about `version`, without its heading."""
    for match in HEADING.finditer(changelog):
        if match["version"] == version:
            rest = changelog[match.end() :]
            following = _ANY_HEADING.search(rest)
            text = rest[: following.start() if following else None].strip()
            if text:
                return text
    raise NoSection(f"CHANGELOG.md has nothing under a heading `## [{version}] - <date>`")
