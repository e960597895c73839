"""Pytest fixtures for tests of programs that use the service: `msgsvc`, and `msgsvc_async` for coroutines.

    def test_ann_is_told(msgsvc):
        ann = msgsvc.person("Ann")
        ann.open(start_link_of_your_program(msgsvc.base_url, msgsvc.api_key))
        assert "Welcome" in ann.wait_for(button="Yes").text

Pytest loads them by itself. Nothing of the service is loaded before the first test that asks for one.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from msgsvc_devkit.late_exports import late_exports

if TYPE_CHECKING:
    from msgsvc_devkit.ephemeral.actors import ActingPerson, AsyncMsgsvc, Event, Msgsvc, Webhook
    from msgsvc_devkit.ephemeral.inbox import SignedRequest
    from msgsvc_devkit.ephemeral.thread import ServiceThread

#: Types for the annotations of tests, each with its module.
_TYPES = {
    "ActingPerson": "ephemeral.actors",
    "AsyncMsgsvc": "ephemeral.actors",
    "Event": "ephemeral.actors",
    "Msgsvc": "ephemeral.actors",
    "SignedRequest": "ephemeral.inbox",
    "Webhook": "ephemeral.actors",
}

__getattr__ = late_exports("msgsvc_devkit", _TYPES)

__all__ = [
    "ActingPerson",
    "AsyncMsgsvc",
    "Event",
    "Msgsvc",
    "SignedRequest",
    "Webhook",
    "msgsvc",
    "msgsvc_async",
    "msgsvc_settings",
    "msgsvc_thread",
]


@pytest.fixture(scope="session")
def msgsvc_thread() -> "Iterator[ServiceThread]":
    """The thread in which services run, for the whole session. Its `base_url` stays the same."""
    from msgsvc_devkit.ephemeral.folder import private_folder  # noqa: PLC0415 - see above
    from msgsvc_devkit.ephemeral.thread import ServiceThread  # noqa: PLC0415 - see above

    with private_folder() as folder:
        thread = ServiceThread(folder)
        thread.start()
        yield thread
        thread.stop()


@pytest.fixture
def msgsvc_settings() -> Mapping[str, Any]:
    """Settings of the service, as in `msgsvc.toml`: override this fixture, e.g. with
    `{"limits": {"requests_per_minute": 5}}`."""
    return {}


@pytest.fixture
def msgsvc_renewed(
    msgsvc_thread: "ServiceThread", msgsvc_settings: Mapping[str, Any]
) -> "Iterator[ServiceThread]":
    """The thread with a new service in it, for both of the following, which a test may use together."""
    msgsvc_thread.renew(msgsvc_settings)
    yield msgsvc_thread
    # Its jobs draw from `random`: other tests in this process may have seeded that.
    msgsvc_thread.end()


@pytest.fixture
def msgsvc(msgsvc_renewed: "ServiceThread") -> "Msgsvc":
    """A new service with a project, an API key and the sandbox messenger, for blocking tests."""
    from msgsvc_devkit.ephemeral.actors import Msgsvc  # noqa: PLC0415 - see above

    return Msgsvc(msgsvc_renewed)


@pytest.fixture
def msgsvc_async(msgsvc_renewed: "ServiceThread") -> "AsyncMsgsvc":
    """The same for coroutines: what takes time is awaited, and the test's loop goes on meanwhile."""
    from msgsvc_devkit.ephemeral.actors import AsyncMsgsvc  # noqa: PLC0415 - see above

    return AsyncMsgsvc(msgsvc_renewed)
