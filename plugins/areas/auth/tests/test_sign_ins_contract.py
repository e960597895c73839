"""What other plugins may rely on when they have people signed in."""

import asyncio
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from msgsvc_core.channels import ChannelUser
from msgsvc_core.kernel.errors import NotFound
from msgsvc_core.plugins.sign_ins import DirectSignIn, PageSignIn
from msgsvc_core.service import Service
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_devkit import settled
from msgsvc_devkit.fixtures import Tenant
from plugins.areas.auth.tests.conftest import Person, sign_ins_of
from plugins.areas.auth.tests.hosted import browsing


class Provider:
    """The plugin, and a person who opens its pages and presses the bot's buttons."""

    def __init__(self, service: Service, project_id: str, person: Person) -> None:
        self.sign_ins = sign_ins_of(service)
        self.project_id = project_id
        self.subscriber: Subscriber
        self._service = service
        self._person = person

    async def subscribe(self) -> None:
        person = self._person
        async with self.transaction() as tx:
            self.subscriber = await self._service.subscribers.ensure(
                tx, self.project_id, "messenger_a", person.user, person.chat_id, source="deep_link"
            )

    def transaction(self) -> Any:
        return self._service.db.transaction()

    async def approve_page(self, url: str, *, number: bool) -> str:
        """Says Yes, and returns the code with which the browser is led back."""
        async with browsing(self._service) as browser:
            await browser.open(urlsplit(url).path)
            answer = browser.find(r'class="number">(\d\d)<') if number else "Yes"
            await self._person.press(await self._person.open(browser.link()), answer)
            location = (await browser.reload()).headers["Location"]
        return parse_qs(urlsplit(location).query)["code"][0]

    async def answer(self, answer: str) -> None:
        """Answers the last question: by Yes, Cancel or a number."""
        await settled(self._service)
        await self._person.press(self._person.shown, answer)


@pytest.fixture
async def provider(service: Service, tenant: Tenant) -> Provider:
    person = Person(service, "messenger_a", ChannelUser("1001", "Ann", "ann_k", "en"))
    provider = Provider(service, tenant.project.project_id, person)
    await provider.subscribe()
    return provider


def page(provider: Provider, **changed: Any) -> PageSignIn:
    given = {
        "project_id": provider.project_id,
        "source": "oidc",
        "source_id": "req-1",
        "requester_name": "Grafana",
        "requester_url": "https://grafana.example/",
        "return_url": "https://msgsvc.example/oidc/return",
        "state": "abc",
    }
    return PageSignIn(**{**given, **changed})


def question(provider: Provider, **changed: Any) -> DirectSignIn:
    given = {
        "project_id": provider.project_id,
        "source": "oidc",
        "source_id": "ciba-1",
        "subscriber_id": provider.subscriber.subscriber_id,
        "requester_name": "Bank",
        "requester_url": "https://bank.example/",
        "text": "Payment of 20 EUR",
    }
    return DirectSignIn(**{**given, **changed})


async def code_of_page(provider: Provider, *, number: bool = False) -> str:
    async with provider.transaction() as tx:
        url = await provider.sign_ins.open_page(tx, page(provider, number_matching=number))
    return await provider.approve_page(url, number=number)


async def asked(provider: Provider, **changed: Any) -> Any:
    async with provider.transaction() as tx:
        return await provider.sign_ins.ask(tx, question(provider, **changed))


async def exchange(provider: Provider, code: str, project_id: str | None = None) -> Any:
    async with provider.transaction() as tx:
        return await provider.sign_ins.exchange(tx, project_id or provider.project_id, code)


async def take(provider: Provider, session_id: str, project_id: str | None = None) -> Any:
    async with provider.transaction() as tx:
        return await provider.sign_ins.take(tx, project_id or provider.project_id, session_id)


async def status(provider: Provider, session_id: str) -> str:
    async with provider.transaction() as tx:
        return await provider.sign_ins.status(tx, provider.project_id, session_id)


@pytest.mark.parametrize(("number", "method"), [(False, "button"), (True, "number")])
async def test_code_of_a_page_gives_the_person_once(provider, clock, number, method):
    code = await code_of_page(provider, number=number)

    person = await exchange(provider, code)

    assert (person.source, person.source_id, person.method) == ("oidc", "req-1", method)
    assert person.subscriber.subscriber_id == provider.subscriber.subscriber_id
    assert person.confirmed_at_ms == clock.now_ms()
    assert await status(provider, person.session_id) == "consumed"
    assert await exchange(provider, code) is None


@pytest.mark.both_databases
async def test_of_many_exchanges_of_a_code_one_gets_the_person(provider):
    code = await code_of_page(provider)

    people = await asyncio.gather(*(exchange(provider, code) for _ in range(20)))

    assert len([person for person in people if person]) == 1


async def test_code_is_good_for_its_project_and_its_time_alone(provider, clock):
    code, late = await code_of_page(provider), await code_of_page(provider)

    assert await exchange(provider, code, "prj_other") is None
    assert await exchange(provider, "x" * 43) is None
    assert await exchange(provider, code) is not None
    clock.advance(600)
    assert await exchange(provider, late) is None


@pytest.mark.parametrize(("matching", "method"), [(False, "button"), (True, "number")])
async def test_question_that_was_answered_by_yes_is_taken_once(provider, clock, matching, method):
    ask = await asked(provider, number_matching=matching)
    before = await status(provider, ask.session_id), await take(provider, ask.session_id)
    await provider.answer(str(ask.match_number) if matching else "Yes")

    confirmed = await status(provider, ask.session_id)
    person = await take(provider, ask.session_id)

    assert before == ("pending", None)
    assert (ask.match_number is None) is not matching
    assert confirmed == "confirmed"
    assert (person.session_id, person.source_id) == (ask.session_id, "ciba-1")
    assert (person.method, person.confirmed_at_ms) == (method, clock.now_ms())
    assert person.subscriber.subscriber_id == provider.subscriber.subscriber_id
    assert await status(provider, ask.session_id) == "consumed"
    assert await take(provider, ask.session_id) is None


@pytest.mark.both_databases
async def test_of_many_takes_of_a_session_one_gets_the_person(provider):
    ask = await asked(provider)
    await provider.answer("Yes")

    people = await asyncio.gather(*(take(provider, ask.session_id) for _ in range(20)))

    assert len([person for person in people if person]) == 1


async def test_question_that_was_cancelled_is_never_taken(provider):
    ask = await asked(provider)
    await provider.answer("Cancel")

    assert await status(provider, ask.session_id) == "denied"
    assert await take(provider, ask.session_id) is None


async def test_question_runs_out_after_its_own_time(provider, clock):
    short, longest = await asked(provider, lifetime_s=60), await asked(provider, lifetime_s=10**6)
    clock.advance(60)

    assert short.expires_at_ms == clock.now_ms()
    assert longest.expires_at_ms == clock.now_ms() + 540_000
    assert await status(provider, short.session_id) == "expired"
    assert await status(provider, longest.session_id) == "pending"


async def test_yes_that_is_not_taken_in_time_runs_out(provider, clock):
    ask = await asked(provider)
    await provider.answer("Yes")
    clock.advance(600)

    assert await status(provider, ask.session_id) == "expired"
    assert await take(provider, ask.session_id) is None


async def test_session_is_its_projects_alone(provider):
    ask = await asked(provider)
    await provider.answer("Yes")

    assert await take(provider, ask.session_id, "prj_other") is None
    assert await take(provider, "ses_" + "x" * 44) is None
    for project_id, session_id in (
        ("prj_other", ask.session_id),
        (provider.project_id, "ses_" + "x" * 44),
        (provider.project_id, "x"),
    ):
        async with provider.transaction() as tx:
            with pytest.raises(NotFound):
                await provider.sign_ins.status(tx, project_id, session_id)


async def test_sign_in_on_a_page_is_exchanged_and_not_taken(provider):
    code = await code_of_page(provider)
    person = await exchange(provider, code)

    assert await take(provider, person.session_id) is None
