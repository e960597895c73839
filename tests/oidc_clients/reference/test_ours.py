"""Our provider beside the certified one: each difference has a reason."""

import json
from pathlib import Path

from tests.oidc_clients.ours import our_clocked_provider
from tests.oidc_clients.reference.comparison import differences, table, unexplained
from tests.oidc_clients.reference.reasons import REASONS
from tests.oidc_clients.reference.recordings import (
    DIFFERENCES,
    OURS,
    RECORDED,
    read,
    recorded,
    written,
)
from tests.oidc_clients.reference.replay import replay

HERE = Path(__file__).parent

#: Above the table.
HEAD = """\
# Differences from the certified provider

The same script of requests, in {cases} cases, goes to npm `oidc-provider` {version}, which is certified, and
to msgsvc; the tests beside this page play it, and write the page. Compared are status codes, error codes,
which members, claims, parameters and headers there are, and where the browser goes; not the values that each
provider chooses, nor texts. What follows is all that differs.

"""


async def test_our_provider_answers_as_recorded(tmp_path: Path) -> None:
    async with our_clocked_provider(tmp_path) as provider:
        recording = await replay(provider)

    assert differences(recorded(OURS, recording), recording) == []


def test_each_difference_from_the_certified_provider_has_a_reason() -> None:
    found = differences(read(RECORDED), read(OURS))

    open_, unused = unexplained(found, REASONS)

    assert not open_, table(open_, [])
    assert not unused


def test_the_page_of_differences_is_up_to_date() -> None:
    reference, ours = read(RECORDED), read(OURS)
    package = json.loads((HERE.parent / "package.json").read_text())
    version = package["devDependencies"]["oidc-provider"]
    page = HEAD.format(cases=len(ours.keys() & reference.keys()), version=version)
    page += table(differences(reference, ours), REASONS)

    assert written(DIFFERENCES, page) == page
