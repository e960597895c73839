"""Visits to a platform's page and the exchange of their codes, built from fakes."""

from dataclasses import replace
from typing import Any

import pytest
from starlette.responses import Response

from msgsvc_auth.hosted.cookies import ReturnCookies, Tickets
from msgsvc_auth.hosted.platform_pages import PlatformPages
from msgsvc_auth.hosted.rendering import PageTemplates
from msgsvc_auth.platforms.exchange import MAX_ATTEMPTS, PlatformExchange
from msgsvc_auth.platforms.models import Arrival, Departure, PlatformVisit
from msgsvc_auth.platforms.sealing import VisitSeal, VisitSecrets
from msgsvc_auth.platforms.visits import JOB
from msgsvc_core.channels import ChannelUser, DeliveryError, PlatformPerson, Reason
from msgsvc_core.jobs import Job, Retry
from msgsvc_core.kernel.errors import Forbidden, NotFound
from msgsvc_core.security import DecryptionError, digest
from msgsvc_devkit.channel import RecordingPage
from msgsvc_devkit.fakes import PROJECT, FakeJobContext, fake_secrets
from plugins.areas.auth.tests.unit.signing_in import (
    LINK,
    NOW_MS,
    SESSION_ID,
    Auth,
    confirmed,
    pending,
    request,
    row_of,
)

EVE = PlatformPerson(user=ChannelUser("1003", "Eve"), chat_id="1003", phone="+12025550123")
REDIRECT = "http://msgsvc.test/login/_return/messenger_a"


class Platforms(Auth):
    """`messenger_a` has a page."""

    def __init__(self) -> None:
        super().__init__()
        self.page = RecordingPage()
        self.page.people["c0de"] = EVE
        self.core.channels["messenger_a"].platform_sign_in = self.page

    def exchange_job(self) -> PlatformExchange:
        return PlatformExchange(
            clock=self.core.clock,
            secrets=self.core.secrets,
            channels=self.core.channels,
            contacts=self.core.contacts,
            sign_in=self.sign_in(),
        )

    def pages(self) -> PlatformPages:
        return PlatformPages(
            hosted=self.hosted(),
            sites=self.sites(),
            visits=self.visits(),
            texts=self.core.texts,
            tickets=Tickets("http://msgsvc.test"),
            cookies=ReturnCookies("http://msgsvc.test"),
            templates=PageTemplates(self.core.texts),
        )

    def visit(self, **changed: Any) -> PlatformVisit:
        """One whose browser is back with a code."""
        new, seal = VisitSecrets.new(REDIRECT), VisitSeal(self.core.secrets)
        state = digest(new.attempt.state)
        visit = PlatformVisit(
            project_id=PROJECT,
            session_id=SESSION_ID,
            visit_id="apv_1",
            channel_key="messenger_a",
            state_digest=state,
            browser_digest=digest(new.cookie),
            sealed=seal.seal(new.attempt),
            return_path="/login/shop?resume=1",
            expires_at_ms=NOW_MS + 600_000,
            status="checking",
            sealed_code=seal.seal_code("c0de", state),
        )
        return replace(visit, **changed)


def row(visit: PlatformVisit) -> dict[str, Any]:
    return {name: getattr(visit, name) for name in visit.__dataclass_fields__}


def job(attempts: int = 1) -> Job:
    payload = {"session_id": SESSION_ID, "visit_id": "apv_1"}
    return Job("job_1", JOB, "default", payload, attempts, attempts, NOW_MS, PROJECT)


async def test_a_code_becomes_a_person_with_a_verified_phone() -> None:
    auth, ctx = Platforms(), FakeJobContext()
    visit = auth.visit()
    ctx.db.answers += [[row(visit)], [row_of(pending())], 1, [row_of(confirmed())], 1]
    await auth.exchange_job().run(ctx, [job()])

    (person,) = auth.core.subscribers.everybody
    assert person.first_name == "Eve"
    known = auth.core.contacts.known[PROJECT, person.subscriber_id]
    assert known.phone == "+12025550123"
    ((_, attempt),) = auth.page.exchanged
    assert (attempt.redirect_uri, attempt.state) == (REDIRECT, "")
    assert ctx.db.params_of("on_platform = :on_platform")[0]["on_platform"] is True


async def test_nothing_is_exchanged_for_a_sign_in_that_is_over() -> None:
    for answers in (
        [[]],
        [[row(Platforms().visit(visit_id="apv_2"))]],
        [[row(Platforms().visit(status="failed"))]],
        [[row(Platforms().visit())], [row_of(confirmed())]],
        [[row(Platforms().visit())], []],
    ):
        auth, ctx = Platforms(), FakeJobContext()
        ctx.db.answers += answers
        await auth.exchange_job().run(ctx, [job()])

        assert auth.page.exchanged == []


async def test_an_outage_is_tried_again_later_each_time_and_given_up() -> None:
    auth = Platforms()
    waits = []
    for attempts in range(1, MAX_ATTEMPTS + 1):
        ctx = FakeJobContext()
        auth.page.failures = [DeliveryError(Reason.PLATFORM_UNAVAILABLE, "away")]
        ctx.db.answers += [[row(auth.visit())], [row_of(pending())], 1]
        try:
            await auth.exchange_job().run(ctx, [job(attempts)])
        except Retry as retry:
            waits.append(retry.after_s)
        else:
            assert ctx.db.params_of("'failed'")[0]["failure"] == "unavailable"

    assert waits == [1, 2, 4]


async def test_a_visit_leaves_secrets_in_the_address_and_the_cookie_alone() -> None:
    auth = Platforms()
    auth.core.db.replies["INSERT INTO auth_platform_visits"] = 1
    departure = await auth.visits().leave(pending(), "messenger_a", "/login/shop?resume=1")

    (stored,) = auth.core.db.params_of("INSERT")
    state = departure.url.partition("state=")[2].partition("&")[0]
    assert (stored["state_digest"], stored["browser_digest"]) == (
        digest(state),
        digest(departure.cookie),
    )
    assert state not in str(stored)
    assert departure.cookie not in str(stored)
    assert departure.cookie not in repr(departure)
    with pytest.raises(DecryptionError):
        VisitSeal(fake_secrets()).open(stored["sealed"], digest("another"))
    with pytest.raises(NotFound):
        await auth.visits().leave(pending(), "messenger_b", "/")
    with pytest.raises(NotFound):
        await auth.visits().leave(pending(channel="messenger_b"), "messenger_a", "/")


async def test_an_answer_is_enqueued_with_its_state_and_once() -> None:
    auth = Platforms()
    arrival = Arrival("messenger_a", "s" * 43, "c0de", None)
    auth.core.db.answers += [[row(auth.visit())], [], [row(auth.visit())], [], []]
    first = await auth.visits().arrive(arrival, "cookie")
    again = await auth.visits().arrive(arrival, "cookie")
    with pytest.raises(Forbidden):
        await auth.visits().arrive(arrival, "another")

    assert first == again == "/login/shop?resume=1"
    (enqueued,) = auth.core.jobs.enqueued
    assert enqueued.payload == {"session_id": SESSION_ID, "visit_id": "apv_1"}
    assert "c0de" not in str(auth.core.db.statements)


async def test_without_a_ticket_nobody_leaves() -> None:
    auth = Platforms()
    auth.core.db.answers += [[row_of(LINK)]]
    answer = await auth.pages().leave(request(query="state=state"))

    assert answer.status_code == 303
    assert answer.headers["location"] == "/login/shop?state=state&lang=en&resume=1"


def test_a_cookie_of_a_visit_is_of_this_address_alone() -> None:
    departure = Departure("https://platform.example/", "0" * 16, "secret", 600)
    plain, secure = Response(), Response()
    ReturnCookies("http://msgsvc.test").write(plain, request(), departure)
    ReturnCookies("https://msgsvc.test").write(secure, request(), departure)

    assert "Path=/login/_return;" in plain.headers["set-cookie"]
    assert secure.headers["set-cookie"].startswith(f"__Host-msgsvc-return-{'0' * 16}=secret;")
    assert "Secure" in secure.headers["set-cookie"]
