"""Pytest fixtures for tests of programs that use the service: `msgsvc`, and `msgsvc_async` for coroutines.
`msgsvc_session` and `msgsvc_session_async` are the same with one service for all tests.

    def test_ann_is_told(msgsvc):
        ann = msgsvc.person("Ann")
        ann.open(start_link_of_your_program(msgsvc.base_url, msgsvc.api_key))
        assert "Welcome" in ann.wait_for(button="Yes").text

Pytest loads them by itself. Nothing of the service is loaded before the first test that asks for one.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
    "msgsvc_session",
    "msgsvc_session_async",
    "msgsvc_session_settings",
    "msgsvc_session_thread",
    "msgsvc_settings",
    "msgsvc_thread",
]


@contextmanager
def _started() -> "Iterator[ServiceThread]":
    from msgsvc_devkit.ephemeral.folder import private_folder  # noqa: PLC0415 - loaded by the first test that asks
    from msgsvc_devkit.ephemeral.thread import ServiceThread  # noqa: PLC0415 - loaded by the first test that asks

    with private_folder() as folder:
        thread = ServiceThread(folder)
        thread.start()
        try:
            yield thread
        finally:
            thread.stop()


@pytest.fixture(scope="session")
def msgsvc_thread() -> "Iterator[ServiceThread]":
    """The thread in which services run, for the whole session. Its `base_url` stays the same."""
    with _started() as thread:
        yield thread


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
    from msgsvc_devkit.ephemeral.actors import Msgsvc  # noqa: PLC0415 - loaded by the first test that asks

    return Msgsvc(msgsvc_renewed)


@pytest.fixture
def msgsvc_async(msgsvc_renewed: "ServiceThread") -> "AsyncMsgsvc":
    """The same for coroutines: what takes time is awaited, and the test's loop goes on meanwhile."""
    from msgsvc_devkit.ephemeral.actors import AsyncMsgsvc  # noqa: PLC0415 - loaded by the first test that asks

    return AsyncMsgsvc(msgsvc_renewed)


@pytest.fixture(scope="session")
def msgsvc_session_settings() -> Mapping[str, Any]:
    """As `msgsvc_settings`, for the service of all tests: override this one with the scope `session`."""
    return {}


@pytest.fixture(scope="session")
def msgsvc_session_thread(msgsvc_session_settings: Mapping[str, Any]) -> "Iterator[ServiceThread]":
    """A second thread, with one service that runs from the first test that uses it until the session ends."""
    with _started() as thread:
        thread.renew(msgsvc_session_settings)
        yield thread


@pytest.fixture(scope="session")
def msgsvc_session(msgsvc_session_thread: "ServiceThread") -> "Msgsvc":
    """One service for all tests, e.g. for a program that takes long to start: what a test leaves in it, the
    next one finds. Fixtures of any scope may use it."""
    from msgsvc_devkit.ephemeral.actors import Msgsvc  # noqa: PLC0415 - loaded by the first test that asks

    return Msgsvc(msgsvc_session_thread)


@pytest.fixture(scope="session")
def msgsvc_session_async(msgsvc_session_thread: "ServiceThread") -> "AsyncMsgsvc":
    """The same service for coroutines."""
    from msgsvc_devkit.ephemeral.actors import AsyncMsgsvc  # noqa: PLC0415 - loaded by the first test that asks

    return AsyncMsgsvc(msgsvc_session_thread)
