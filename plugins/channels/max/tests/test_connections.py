"""Where calls go: through a proxy, and to a platform whose certificate few machines trust."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from msgsvc_devkit.certificates import server_context, write_certificate
from msgsvc_devkit.platforms.max.api import application
from msgsvc_devkit.web_servers import stop


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Of an authority that no machine knows, for 127.0.0.1, with its key."""
    return write_certificate(tmp_path / "root.pem", "127.0.0.1")


@pytest.fixture
async def secure_url(platform, certificate: Path) -> AsyncIterator[str]:
    """The fake behind that certificate."""
    runner = web.AppRunner(application(platform), access_log=None, shutdown_timeout=0.01)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=server_context(certificate))
    await site.start()
    yield f"https://127.0.0.1:{site.port}"
    await stop(runner)


async def test_a_certificate_is_trusted_where_its_authority_is_named(
    make_channel, secure_url, certificate
):
    without = await (await make_channel(base_url=secure_url)).check()
    with_it = await (await make_channel(base_url=secure_url, ca_file=str(certificate))).check()

    assert (without.ok, without.revoked) == (False, False)
    assert with_it.ok


async def test_every_call_goes_through_the_proxy(make_channel, platform):
    # A proxy is asked for whole addresses; the fake takes them as if they were its own.
    channel = await make_channel(base_url="http://max.invalid/", proxy=platform.url)

    health = await channel.check()

    assert health.ok
    assert platform.calls[0].headers["Host"] == "max.invalid"


async def test_a_proxy_that_is_away_is_named_without_its_password(make_channel):
    proxy = "http://user:pa55word@127.0.0.1:1"
    channel = await make_channel(base_url="http://max.invalid", proxy=proxy)

    health = await channel.check()

    assert not health.ok
    assert "pa55word" not in health.detail
