"""What a suite finds on the machine that runs it: servers and programs.

Nothing but Python is needed: tests of what is missing are skipped. The environment variable
`MSGSVC_TEST_REQUIRE=postgres,redis,...` names what must be there; then a missing one fails.
"""

import os
import shutil
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

import pytest

from msgsvc_devkit.databases import postgres_answers, postgres_url
from msgsvc_devkit.runners import rabbitmq_url, redis_url

REQUIRE_VARIABLE = "MSGSVC_TEST_REQUIRE"

#: Best first: the headless shell draws no windows, so a page takes half of the CPU time.
CHROMIUM_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


@dataclass(frozen=True, slots=True)
class Part:
    """A server or program that some tests need. `how` says how to get it."""

    name: str
    how: str
    is_found: Callable[[], bool]


def chromium() -> str | None:
    """The path of the machine's Chromium."""
    return next((path for name in CHROMIUM_NAMES if (path := shutil.which(name))), None)


def listens(url: str, default_port: int) -> bool:
    """Whether a server accepts connections at the URL."""
    parts = urlsplit(url)
    try:
        address = parts.hostname or "127.0.0.1", parts.port or default_port
        with socket.create_connection(address, 2):
            return True
    except OSError:
        return False


def _program(*names: str) -> Callable[[], bool]:
    # Debian keeps the programs of root where others have no path.
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin"))
    return lambda: all(shutil.which(name, path=path) for name in names)


def _folder(*places: str) -> Callable[[], bool]:
    return lambda: all(Path(place).exists() for place in places)


#: In the order in which they matter. Folders are relative to the checkout, from which pytest is run.
PARTS = (
    Part(
        "postgres",
        "apt-get install postgresql, and MSGSVC_TEST_POSTGRES_URL for a role that may create databases",
        lambda: postgres_answers(postgres_url()),
    ),
    Part("redis", "apt-get install redis-server", lambda: listens(redis_url(), 6379)),
    Part("rabbitmq", "apt-get install rabbitmq-server", lambda: listens(rabbitmq_url(), 5672)),
    Part(
        "browser",
        "apt-get install chromium-headless-shell zbar-tools",
        lambda: chromium() is not None and shutil.which("zbarimg") is not None,
    ),
    Part("node", "apt-get install nodejs", _program("node")),
    Part(
        "npm",
        "apt-get install npm, and npm ci --prefix tests/e2e --ignore-scripts",
        lambda: _program("npm")() and _folder("tests/e2e/node_modules/axe-core")(),
    ),
    Part("php", "apt-get install php-cli", _program("php")),
    Part("go", "apt-get install golang-go", _program("go")),
    Part("nginx", "apt-get install nginx-light", _program("nginx")),
    Part("pgbouncer", "apt-get install pgbouncer", _program("pgbouncer")),
    Part("client-tools", "make client-tools", _folder("tests/clients/node_modules")),
)

#: What only the slow tests need.
SLOW_PARTS = (
    Part("prometheus", "apt-get install prometheus", _program("prometheus")),
    Part("oidc-clients", "make oidc-clients", _folder(".venv/oidc-clients")),
    Part("docs-site", "docs/site/install.sh", _folder(".venv/docs-site")),
    Part(
        "containers",
        "make deploy-tools, and as root apt-get install podman runc mmdebstrap",
        lambda: _folder(".venv/deploy-tools")() and _program("podman", "runc", "mmdebstrap")(),
    ),
    Part(
        "mail-servers",
        "as root, apt-get install postfix dovecot-imapd",
        _program("postfix", "dovecot"),
    ),
)


@cache
def has(name: str) -> bool:
    """Whether the machine has the part of that name."""
    return next(part for part in (*PARTS, *SLOW_PARTS) if part.name == name).is_found()


def is_required(name: str) -> bool:
    """Whether the part of that name must be there."""
    return name in os.environ.get(REQUIRE_VARIABLE, "").split(",")


def missing(name: str, reason: str) -> NoReturn:
    """Skips the test for this reason, or fails it if the part of that name must be there."""
    if is_required(name):
        pytest.fail(reason)
    pytest.skip(reason)
