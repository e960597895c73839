"""Services that keep accounts."""

from functools import partial

import pytest

from msgsvc_devkit.fixtures import ServiceFactory


@pytest.fixture
def make_service(make_service: ServiceFactory) -> ServiceFactory:
    """With the dashboard, unless a test names other plugins."""
    return partial(make_service, plugins=("dashboard",))
