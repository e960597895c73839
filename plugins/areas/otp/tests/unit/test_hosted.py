"""The hosted page for codes, built from fakes."""

from types import ModuleType

import pytest
from starlette.requests import Request

from msgsvc_core.kernel.errors import InvalidUrl
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_otp import plugin
from msgsvc_otp.hosted.pages import HostedCodes
from msgsvc_otp.hosted.rendering import CodeTemplates
from msgsvc_otp.hosted.service import CodePages
from msgsvc_otp.settings import OtpSettings

from .test_parts import codes


@pytest.fixture
def core() -> FakeContext:
    declared: ModuleType = plugin
    return plugin_context(plugin=declared, settings=[OtpSettings()])


def pages_of(core: FakeContext) -> CodePages:
    return CodePages(
        clock=core.clock,
        secrets=core.secrets,
        settings=OtpSettings(),
        projects=core.projects,
        subscribers=core.subscribers,
        channels=core.channels,
        codes=codes(core),
        base_url="https://msgsvc.test",
    )


def test_a_page_leads_back_by_https_or_to_ones_own_machine(core: FakeContext) -> None:
    pages = pages_of(core)
    pages.check_return_url("https://shop.example/back?a=b")
    pages.check_return_url("http://localhost:9000/back")

    for wrong in ("http://shop.example/", "https://shop.example/#part"):
        with pytest.raises(InvalidUrl):
            pages.check_return_url(wrong)


def test_the_language_in_the_address_wins(core: FakeContext) -> None:
    request = Request({"type": "http", "query_string": b"lang=ru", "headers": []})

    assert CodeTemplates(core.texts).language(request, "en") == "ru"


def test_guesses_are_posted_to_the_page_itself(core: FakeContext) -> None:
    hosted = HostedCodes(
        db=core.db,
        limiter=core.limiter,
        settings=OtpSettings(),
        pages=pages_of(core),
        templates=CodeTemplates(core.texts),
    )

    assert [getattr(route, "path", "") for route in hosted.routes()] == [
        "/code/_static",
        "/code/{token}/again",
        "/code/{token}",
    ]
