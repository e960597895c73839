"""The hosted page for codes."""

import pytest
from starlette.requests import Request

from msgsvc_core.kernel.errors import InvalidUrl
from msgsvc_devkit import MemoryCore
from msgsvc_otp.hosted.rendering import CodeTemplates
from msgsvc_otp.hosted.service import CodePages


def test_a_page_leads_back_by_https_or_to_ones_own_machine(core: MemoryCore) -> None:
    pages = core.get(CodePages)
    pages.check_return_url("https://shop.example/back?a=b")
    pages.check_return_url("http://localhost:9000/back")

    for wrong in ("http://shop.example/", "https://shop.example/#part"):
        with pytest.raises(InvalidUrl):
            pages.check_return_url(wrong)


def test_the_language_in_the_address_wins(core: MemoryCore) -> None:
    request = Request({"type": "http", "query_string": b"lang=ru", "headers": []})

    assert CodeTemplates(core.texts).language(request, "en") == "ru"
