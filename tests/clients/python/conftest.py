"""A running service with the sandbox, which the tests of a module share."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.process import Deployment

CONFIG = """\
plugins = ["sandbox", "auth", "otp", "webhooks", "broadcasts", "forms", "helpdesk"]
[channels.messenger_a]
plugin = "sandbox"
"""


@dataclass(frozen=True)
class Running:
    """`key` is of a project of its own."""

    url: str
    key: str


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    deployment = Deployment(tmp_path_factory.mktemp("service"))
    deployment.configure(CONFIG)
    with deployment.serving() as server:
        yield Running(server.url, deployment.create_key())
