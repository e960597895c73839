"""The guide names the clients that are run, in the versions that are."""

import json
import re
from pathlib import Path

HERE = Path(__file__).parent

GUIDE = HERE.parents[1] / "docs" / "guides" / "openid-connect.md"

#: A row of the table of clients whose version is pinned here, and not by Debian.
ROW = re.compile(r"^\| `([\w-]+)` \((npm|PyPI)\)[^|]*\| ([\d.]+) \|", re.MULTILINE)


def test_the_guide_names_the_clients_in_their_versions() -> None:
    named = {
        (registry, name): version for name, registry, version in ROW.findall(GUIDE.read_text())
    }
    package = json.loads((HERE / "package.json").read_text())
    pinned = {("npm", name): version for name, version in package["devDependencies"].items()}
    for requirements in (HERE / "requirements").iterdir():
        for line in requirements.read_text().splitlines():
            name, separator, version = line.partition("==")
            if separator:
                pinned["PyPI", name] = version

    assert len(named) == 6
    assert named.items() <= pinned.items()
