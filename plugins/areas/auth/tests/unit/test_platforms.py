"""Visits to a platform's page and the exchange of their codes."""

from dataclasses import dataclass, replace
from urllib.parse import parse_qs, urlsplit

import pytest
from starlette.responses import Response

from msgsvc_auth.hosted.cookies import ReturnCookies
from msgsvc_auth.models import Session
from msgsvc_auth.platforms.exchange import MAX_ATTEMPTS
from msgsvc_auth.platforms.models import Arrival, Departure
from msgsvc_auth.platforms.sealing import VisitSeal
from msgsvc_auth.platforms.visits import JOB, PlatformVisits
from msgsvc_auth.service import SignIn
from msgsvc_auth.settings import AuthSettings
from msgsvc_core.channels import ChannelUser, DeliveryError, PlatformPerson, Reason
from msgsvc_core.jobs import Job, Retry
from msgsvc_core.kernel.errors import Forbidden, NotFound
from msgsvc_core.security import DecryptionError, digest
from msgsvc_devkit import MemoryCore
from msgsvc_devkit.channel import RecordingPage
from msgsvc_devkit.core import PROJECT
from plugins.areas.auth.tests.unit.signing_in import begin, find_person, request, say_yes

EVE = PlatformPerson(user=ChannelUser("1003", "Eve"), chat_id="1003", phone="+12025550123")
BACK = "/login/shop?resume=1"


@dataclass
class Browser:
    """A browser whose sign-in waits, and the page of `messenger_a`, which knows Eve by the code `c0de`."""

    core: MemoryCore
    session: Session
    page: RecordingPage

    @property
    def visits(self) -> PlatformVisits:
        return PlatformVisits(
            clock=self.core.clock,
            db=self.core.db,
            secrets=self.core.secrets,
            channels=self.core.channels,
            jobs=self.core.jobs,
            settings=self.core.settings(AuthSettings),
            base_url="http://msgsvc.test",
        )

    async def leave(self) -> Departure:
        return await self.visits.leave(self.session, "messenger_a", BACK)

    async def arrive(self, left: Departure, **changed: str) -> str:
        """Comes back with the code; returns where the browser is led."""
        arrival = Arrival("messenger_a", state_of(left), "c0de", None)
        return await self.visits.arrive(arrival, changed.get("cookie", left.cookie))

    async def jobs(self) -> list[Job]:
        async with self.core.db.read() as tx:
            return await self.core.jobs_named(tx, JOB)

    async def visit(self) -> Job:
        """Goes there and comes back; returns the job that exchanges the code."""
        await self.arrive(await self.leave())
        return (await self.jobs())[-1]

    async def notice(self) -> str | None:
        """What the page says of the visit."""
        return await self.visits.notice(self.session)


def state_of(left: Departure) -> str:
    return parse_qs(urlsplit(left.url).query)["state"][0]


@pytest.fixture
async def browser(core: MemoryCore) -> Browser:
    page = RecordingPage()
    page.people["c0de"] = EVE
    core.recording("messenger_a").platform_sign_in = page
    async with core.db.transaction() as tx:
        session = (await begin(core, tx)).session
    return Browser(core, session, page)


async def test_a_code_becomes_a_person_with_a_verified_phone(
    core: MemoryCore, browser: Browser
) -> None:
    await core.run(await browser.visit())

    session = await core.get(SignIn).get(PROJECT, browser.session.session_id)
    assert (session.stored_status, session.method) == ("confirmed", "platform")
    async with core.db.read() as tx:
        eve = await find_person(core, tx, "1003")
        assert eve is not None
        contacts = await core.contacts.find(tx, PROJECT, eve.subscriber_id)
    assert (eve.subscriber_id, eve.first_name) == (session.subscriber_id, "Eve")
    assert contacts.phone == "+12025550123"
    ((_, attempt),) = browser.page.exchanged
    assert attempt.redirect_uri == "http://msgsvc.test/login/_return/messenger_a"
    assert attempt.state == ""


@pytest.mark.parametrize("why", ["gone", "another visit", "failed", "confirmed by the bot"])
async def test_nothing_is_exchanged_for_a_sign_in_that_is_over(
    core: MemoryCore, browser: Browser, why: str
) -> None:
    job = await browser.visit()
    if why == "another visit":
        await browser.visit()
    async with core.db.transaction() as tx:
        if why == "gone":
            await tx.execute("DELETE FROM auth_sessions")
        if why == "failed":
            await tx.execute("UPDATE auth_platform_visits SET status = 'failed'")
        if why == "confirmed by the bot":
            await say_yes(core, tx, browser.session)
    await core.run(job)

    assert browser.page.exchanged == []


async def test_an_outage_is_tried_again_later_each_time_and_given_up(
    core: MemoryCore, browser: Browser
) -> None:
    job = await browser.visit()
    waits, told = [], []
    for attempts in range(1, MAX_ATTEMPTS + 1):
        browser.page.failures = [DeliveryError(Reason.PLATFORM_UNAVAILABLE, "away")]
        try:
            await core.run(replace(job, attempts=attempts))
        except Retry as retry:
            waits.append(retry.after_s)
        told.append(await browser.notice())

    assert waits == [1, 2, 4]
    assert told == ["checking", "checking", "checking", "unavailable"]


async def test_a_visit_leaves_secrets_in_the_address_and_the_cookie_alone(
    core: MemoryCore, browser: Browser
) -> None:
    left = await browser.leave()
    async with core.db.read() as tx:
        stored = await tx.fetch_one("SELECT * FROM auth_platform_visits")

    assert stored is not None
    state = state_of(left)
    assert (stored["state_digest"], stored["browser_digest"]) == (
        digest(state),
        digest(left.cookie),
    )
    assert state not in str([*stored])
    assert left.cookie not in str([*stored])
    assert left.cookie not in repr(left)
    with pytest.raises(DecryptionError):
        VisitSeal(core.secrets).open(stored["sealed"], digest("another"))


async def test_nobody_leaves_for_a_page_that_the_sign_in_does_not_offer(browser: Browser) -> None:
    of_another = replace(browser.session, channel="messenger_b")

    with pytest.raises(NotFound):
        await browser.visits.leave(browser.session, "messenger_b", "/")
    with pytest.raises(NotFound):
        await browser.visits.leave(of_another, "messenger_a", "/")


async def test_an_answer_is_enqueued_with_its_state_and_once(
    core: MemoryCore, browser: Browser
) -> None:
    left = await browser.leave()
    first, again = await browser.arrive(left), await browser.arrive(left)
    with pytest.raises(Forbidden):
        await browser.arrive(left, cookie="another")

    assert first == again == BACK
    [enqueued] = await browser.jobs()
    async with core.db.read() as tx:
        stored = await tx.fetch_one("SELECT * FROM auth_platform_visits")
    assert stored is not None
    assert enqueued.payload == {
        "session_id": browser.session.session_id,
        "visit_id": stored["visit_id"],
    }
    assert "c0de" not in str([*stored])


def test_a_cookie_of_a_visit_is_of_this_address_alone() -> None:
    departure = Departure("https://platform.example/", "0" * 16, "secret", 600)
    plain, secure = Response(), Response()
    ReturnCookies("http://msgsvc.test").write(plain, request(), departure)
    ReturnCookies("https://msgsvc.test").write(secure, request(), departure)

    assert "Path=/login/_return;" in plain.headers["set-cookie"]
    assert secure.headers["set-cookie"].startswith(f"__Host-msgsvc-return-{'0' * 16}=secret;")
    assert "Secure" in secure.headers["set-cookie"]
