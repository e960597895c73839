"""What both providers answered when it was last looked at."""

import json
from pathlib import Path

import pytest

from tests.oidc_clients.reference.recording import Recording

#: Of oidc-provider, in the version of package.json, and of ours. To renew one: delete it, and run its test.
RECORDED = Path(__file__).with_name("oidc-provider.json")
OURS = Path(__file__).with_name("msgsvc.json")

#: The table of differences, for readers. It is renewed the same way.
DIFFERENCES = Path(__file__).with_name("differences.md")


def written(file: Path, now: str) -> str:
    """The text that `now` is to equal. Fails after writing it where there is none."""
    if not file.exists():
        file.write_text(now)
        pytest.fail("it was written anew: look at what is different now")
    return file.read_text()


def read(file: Path) -> Recording:
    """A recording."""
    found: Recording = json.loads(file.read_text())
    return found


def recorded(file: Path, now: Recording) -> Recording:
    """The recording that `now` is to equal. Fails after writing it where there is none."""
    if not file.exists():
        file.write_text(json.dumps(now, indent=1) + "\n")
        pytest.fail("it was recorded anew: look at what is different now")
    return read(file)
