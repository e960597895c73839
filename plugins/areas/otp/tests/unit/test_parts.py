"""The plugin's objects one by one."""

import pytest

from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.db import Tx
from msgsvc_core.jobs import NewJob
from msgsvc_core.kernel.clock import DAY_MS
from msgsvc_core.kernel.errors import BillingBlocked, NotFound, ValidationFailed
from msgsvc_core.messages.templates.models import CreateTemplateBody
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.security import SecretBox
from msgsvc_devkit import MemoryCore, memory_core
from msgsvc_devkit.core import PROJECT
from msgsvc_otp.codes import CodeHashes
from msgsvc_otp.models import OneTimeCode, RequestOtpBody, SendOtpBody
from msgsvc_otp.sending import TOLD
from msgsvc_otp.service import OneTimeCodes


async def send(core: MemoryCore, tx: Tx, subscriber_id: str = "sub_1") -> OneTimeCode:
    body = SendOtpBody(subscriber_id=subscriber_id)
    return await core.get(OneTimeCodes).send(tx, PROJECT, body)


async def test_a_code_is_said_in_the_language_of_its_reader(core: MemoryCore, tx: Tx) -> None:
    for lang in ("en", "ru"):
        person = await core.person(tx, f"sub_{lang}", lang=lang)
        await send(core, tx, person.subscriber_id)
    english, russian = await core.texts_sent(tx)

    assert "Your code for Shop:" in english
    assert "Ваш код для Shop:" in russian


async def test_a_template_that_does_not_show_the_code_is_refused(core: MemoryCore, tx: Tx) -> None:
    await core.person(tx)
    await core.templates.create(tx, PROJECT, CreateTemplateBody(key="otp", text="Hello"))

    with pytest.raises(ValidationFailed, match="must hold"):
        await send(core, tx)


async def test_a_code_is_not_sent_when_it_works_no_more(core: MemoryCore, tx: Tx) -> None:
    person = await core.person(tx)
    code = await send(core, tx)

    [call] = await core.calls(tx)
    assert (call.channel, call.chat_id) == ("messenger_a", person.chat_id)
    assert call.payload["expires_at_ms"] == code.expires_at_ms == core.clock.now_ms() + 300_000
    assert call.payload["then"]["job"] == TOLD


class Blocked:
    """Billing of a project that may have no codes."""

    @hookimpl
    async def check_operation(self, operation: str) -> None:
        if operation == "otp.send":
            raise BillingBlocked


async def test_a_request_that_would_not_be_paid_for_makes_no_code() -> None:
    async with (
        memory_core(plugins=["otp"], extra_plugins=[("billing", Blocked())]) as core,
        core.db.transaction() as tx,
    ):
        codes = core.get(OneTimeCodes)
        with pytest.raises(BillingBlocked):
            await codes.request(tx, PROJECT, RequestOtpBody())

        assert await codes.page(tx, PROJECT, PageQuery()) == []


@pytest.mark.parametrize("terms", [{"length": 9}, {"ttl_minutes": 31}, {"max_attempts": 11}])
async def test_terms_beyond_the_settings_are_refused(
    core: MemoryCore, tx: Tx, terms: dict[str, int]
) -> None:
    with pytest.raises(ValidationFailed, match=next(iter(terms))):
        await core.get(OneTimeCodes).request(tx, PROJECT, RequestOtpBody(**terms))


def test_a_hash_is_of_one_code_of_one_id() -> None:
    hashes = CodeHashes(SecretBox(["k" * 32]))
    stored = hashes.hash("otp_1", "123456")

    assert hashes.match("otp_1", "123456", stored)
    assert not hashes.match("otp_2", "123456", stored)
    assert not hashes.match("otp_1", "123457", stored)


async def test_codes_are_deleted_after_a_week(core: MemoryCore) -> None:
    async with core.db.transaction() as tx:
        await core.person(tx)
        code = await send(core, tx)

    async def purge() -> OneTimeCode:
        await core.run(NewJob("otp.purge"))
        async with core.db.read() as tx:
            return await core.get(OneTimeCodes).get(tx, PROJECT, code.otp_id)

    core.clock.advance(7 * DAY_MS / 1000)
    kept = await purge()
    core.clock.advance(1)

    assert kept.otp_id == code.otp_id
    with pytest.raises(NotFound):
        await purge()
