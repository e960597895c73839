"""The plugin's objects one by one, built from fakes."""

from types import ModuleType

import pytest

from msgsvc_core.channels import ChannelUser, Started
from msgsvc_core.jobs import NewJob
from msgsvc_core.kernel.clock import DAY_MS
from msgsvc_core.kernel.errors import BillingBlocked, ValidationFailed
from msgsvc_core.messages.templates.models import CreateTemplateBody
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeJobContext, FakeTx, claimed, inbound_context
from msgsvc_otp import plugin
from msgsvc_otp.by_route import CodeRoutes
from msgsvc_otp.codes import CodeHashes
from msgsvc_otp.inbound import CodeBot
from msgsvc_otp.jobs import CodeJobs
from msgsvc_otp.models import OneTimeCode, RequestOtpBody
from msgsvc_otp.sending import TOLD, CodeSender
from msgsvc_otp.service import OneTimeCodes
from msgsvc_otp.settings import OtpSettings
from msgsvc_otp.wording import Wording

CODE = OneTimeCode(
    project_id=PROJECT,
    otp_id="otp_1",
    stored_status="active",
    purpose="login",
    subscriber_id="sub_1",
    channel=None,
    lang=None,
    length=6,
    ttl_minutes=5,
    max_attempts=3,
    attempts=0,
    created_at_ms=0,
    issued_at_ms=0,
    expires_at_ms=300_000,
)


@pytest.fixture
def core() -> FakeContext:
    declared: ModuleType = plugin
    return plugin_context(plugin=declared, settings=[OtpSettings()])


def wording(core: FakeContext) -> Wording:
    return Wording(projects=core.projects, templates=core.templates, texts=core.texts)


def sender(core: FakeContext) -> CodeSender:
    return CodeSender(
        wording=wording(core),
        channels=core.channels,
        messages=core.messages,
        outbox=core.outbox,
        default_lang="en",
    )


def by_route(core: FakeContext) -> CodeRoutes:
    return CodeRoutes(
        clock=core.clock,
        secrets=core.secrets,
        jobs=core.jobs,
        routes=core.routes,
        subscribers=core.subscribers,
        sender=sender(core),
    )


def codes(core: FakeContext) -> OneTimeCodes:
    return OneTimeCodes(
        clock=core.clock,
        settings=core.settings(OtpSettings),
        hashes=CodeHashes(core.secrets),
        by_route=by_route(core),
        subscribers=core.subscribers,
        contacts=core.contacts,
        billing=core.billing,
        events=core.events,
    )


async def test_a_code_is_said_in_the_language_of_its_reader(core: FakeContext) -> None:
    said = [await wording(core).message(FakeTx(), CODE, lang, "123456") for lang in ("en", "ru")]

    assert ["123456" in message.text for message in said] == [True, True]
    assert said[0].text != said[1].text


async def test_a_template_that_does_not_show_the_code_is_refused(core: FakeContext) -> None:
    await core.templates.create(FakeTx(), PROJECT, CreateTemplateBody(key="otp", text="Hello"))

    with pytest.raises(ValidationFailed, match="must hold"):
        await wording(core).message(FakeTx(), CODE, "en", "123456")


async def test_a_code_is_not_sent_when_it_works_no_more(core: FakeContext) -> None:
    await sender(core).send(FakeTx(), CODE, core.subscribers.person(), "123456")

    [sent] = core.outbox.sent
    assert (sent.chat_id, sent.expires_at_ms) == ("chat 1", CODE.expires_at_ms)
    assert sent.on_complete is not None
    assert sent.on_complete.job == TOLD


async def test_a_request_that_would_not_be_paid_for_makes_no_code(core: FakeContext) -> None:
    core.billing.refused.add("otp.send")

    with pytest.raises(BillingBlocked):
        await codes(core).request(FakeTx(), PROJECT, RequestOtpBody())


@pytest.mark.parametrize("terms", [{"length": 9}, {"ttl_minutes": 31}, {"max_attempts": 11}])
async def test_terms_beyond_the_settings_are_refused(
    core: FakeContext, terms: dict[str, int]
) -> None:
    with pytest.raises(ValidationFailed, match=next(iter(terms))):
        await codes(core).request(FakeTx(), PROJECT, RequestOtpBody(**terms))


def test_a_hash_is_of_one_code_of_one_id(core: FakeContext) -> None:
    hashes = CodeHashes(core.secrets)
    stored = hashes.hash("otp_1", "123456")

    assert hashes.match("otp_1", "123456", stored)
    assert not hashes.match("otp_2", "123456", stored)
    assert not hashes.match("otp_1", "123457", stored)


async def test_a_payload_that_is_none_of_ours_is_left_to_others(core: FakeContext) -> None:
    bot = CodeBot(
        clock=core.clock, projects=core.projects, subscribers=core.subscribers, codes=codes(core)
    )
    [rule] = bot.rules()
    started = Started(update_id="1", chat_id="c1", user=ChannelUser("7", "Ann"), payload="otp_x")
    context = inbound_context(started, channels=core.channels, outbox=core.outbox)

    assert await rule.handler(context) is False
    assert core.outbox.sent == []


async def test_codes_are_deleted_after_a_week(core: FakeContext) -> None:
    jobs = CodeJobs(
        clock=core.clock,
        subscribers=core.subscribers,
        events=core.events,
        by_route=by_route(core),
    )
    core.db.answers.append(0)
    await jobs.purge(FakeJobContext(core.db), [claimed(NewJob("otp.purge"))])

    [(_, params)] = core.db.statements
    assert core.clock.now_ms() - 7 * DAY_MS in params.values()
