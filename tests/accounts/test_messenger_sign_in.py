"""Signing in by a messenger that somebody linked before: asked, answered, and by nobody else."""

from itertools import count
from typing import Any

from msgsvc_core.accounts.models import RequestPurpose
from msgsvc_core.channels import ButtonPressed, ChannelUser, Started
from msgsvc_core.members.models import AddMemberBody
from msgsvc_core.service import Service
from msgsvc_core.testing import FakeClock, RecordingChannel, settled
from tests.accounts.people import browser, new_account

ANN = ChannelUser("1001", "Ann", "ann_k", "en")
EVE = ChannelUser("6666", "Eve", None, "ru")

_numbers = count(1)


class Phone:
    """Somebody's messenger."""

    def __init__(self, service: Service, user: ChannelUser) -> None:
        self._service, self._user = service, user
        channel = service.channels["messenger_a"]
        assert isinstance(channel, RecordingChannel)
        self.channel = channel

    async def open(self, link: str) -> str:
        """What the bot says."""
        payload = link.partition("?start=")[2]
        await self._receive(Started, payload=payload)
        return str(self.channel.sent[-1].message.text)

    async def press(self, number: int, sent: int = -1) -> str:
        """What the question becomes. 0 is Yes, 1 Cancel."""
        question = self.channel.sent[sent]
        data = question.message.buttons[0][number].data
        reference = question.message_ref
        await self._receive(
            ButtonPressed, data=data, message_ref=reference, button_ref=f"b{next(_numbers)}"
        )
        return str(self.channel.edited[-1].message.text) if self.channel.edited else ""

    async def _receive(self, kind: Any, **values: Any) -> None:
        update = kind(
            update_id=str(next(_numbers)), chat_id=self._user.user_id, user=self._user, **values
        )
        await self._service.inbound.receive("messenger_a", update)
        await settled(self._service)


async def begin(
    service: Service, purpose: RequestPurpose = "sign_in", account_id: str | None = None
) -> tuple[str, str]:
    """(the link to the bot, the secret of the browser that waits)"""
    async with service.db.transaction() as tx:
        token, waiting = await service.messenger_sign_in.begin(tx, purpose, browser(), account_id)
    return service.messenger_sign_in.links(token)["messenger_a"], waiting


async def claim(service: Service, waiting: str) -> str | None:
    async with service.db.transaction() as tx:
        return await service.messenger_sign_in.claim(tx, waiting)


async def test_a_linked_messenger_signs_its_account_in_once(
    service: Service, clock: FakeClock
) -> None:
    ann = await new_account(service)
    phone = Phone(service, ANN)
    link, linking = await begin(service, "link", ann.account_id)
    asked = await phone.open(link)
    linked = await phone.press(0)

    link, waiting = await begin(service)
    early = await claim(service, waiting)
    clock.advance(120)
    question = await phone.open(link)
    done = await phone.press(0)
    again = await phone.press(0)

    assert ann.email in asked
    assert "From now on" in linked
    assert "Firefox on Linux" in question
    assert "203.0.113.7" in question
    assert "2 minutes ago" in question
    assert "You are signed in" in done
    assert "no longer valid" in again
    assert early is None
    assert await claim(service, linking) is None
    assert await claim(service, waiting) == ann.account_id
    assert await claim(service, waiting) is None


async def test_cancel_strangers_late_answers_and_foreign_presses_sign_nobody_in(
    service: Service, clock: FakeClock
) -> None:
    ann = await new_account(service)
    phone, eve = Phone(service, ANN), Phone(service, EVE)
    link, _ = await begin(service, "link", ann.account_id)
    await phone.open(link)
    await phone.press(0)

    link, waiting = await begin(service)
    stranger = await eve.open(link)
    await phone.open(link)
    edits = len(phone.channel.edited)
    await eve.press(0)
    cancelled = await phone.press(1)
    late_link, late = await begin(service)
    await phone.open(late_link)
    clock.advance(601)
    said = await phone.press(0)
    unlinked_link, unlinked = await begin(service)
    await phone.open(unlinked_link)
    async with service.db.transaction() as tx:
        await service.messenger_sign_in.unlink(tx, ann.account_id, "messenger_a", ANN.user_id)
    after = await phone.press(0)

    assert "ни к чему не привязан" in stranger
    assert (cancelled, len(phone.channel.edited) - edits) == ("Cancelled.", 3)
    assert "no longer valid" in said
    assert "signs nobody in" in after
    for secret in (waiting, late, unlinked):
        assert await claim(service, secret) is None


async def test_one_press_moves_no_messenger_to_another_account(service: Service) -> None:
    ann, eve = await new_account(service), await new_account(service, "eve@x.example")
    phone = Phone(service, ANN)
    said = []
    for account in (ann, eve):
        link, _ = await begin(service, "link", account.account_id)
        await phone.open(link)
        said.append(await phone.press(0))
    link, waiting = await begin(service)
    await phone.open(link)
    await phone.press(0)

    assert "signs in to another account" in said[1]
    assert await claim(service, waiting) == ann.account_id


async def test_a_reset_leaves_nobody_signed_in_and_no_messenger(service: Service) -> None:
    ann = await new_account(service)
    phone = Phone(service, EVE)
    link, _ = await begin(service, "link", ann.account_id)
    await phone.open(link)
    await phone.press(0)
    async with service.db.transaction() as tx:
        await service.accounts.open_session(tx, ann.account_id, ip="", user_agent="")
        await service.sign_in.reset(tx, ann.account_id)

    async with service.db.read() as tx:
        assert await service.messenger_sign_in.linked(tx, ann.account_id) == []
        assert await service.accounts.sessions_of(tx, ann.account_id) == []


async def test_a_new_password_ends_what_waits_for_a_yes(service: Service) -> None:
    ann = await new_account(service)
    phone, eve = Phone(service, ANN), Phone(service, EVE)
    link, _ = await begin(service, "link", ann.account_id)
    await phone.open(link)
    await phone.press(0)
    foreign, _ = await begin(service, "link", ann.account_id)
    await eve.open(foreign)
    link, waiting = await begin(service)
    await phone.open(link)
    await phone.press(0)
    hashed = await service.sign_in.hashed("another one, quite long", ann.email)

    async with service.db.transaction() as tx:
        await service.sign_in.set_password(tx, ann.account_id, hashed)
    await eve.press(0, sent=1)

    async with service.db.read() as tx:
        linked = await service.messenger_sign_in.linked(tx, ann.account_id)
    assert [each.user_id for each in linked] == [ANN.user_id]
    assert await claim(service, waiting) is None


async def test_a_members_link_opens_nobodys_account(service: Service) -> None:
    ann = await new_account(service)
    project = await service.projects.create("Shop")
    phone = Phone(service, EVE)
    async with service.db.transaction() as tx:
        body = AddMemberBody(name="Ann", email=ann.email, role="agent")
        member = await service.members.add(tx, project.project_id, body)
        await service.accounts.make_member(tx, project.project_id, member.member_id, ann.account_id)
        payload, _ = await service.member_links.create(
            tx, project.project_id, member.member_id, 600
        )
    # Whoever manages the project has that link, and opens it themselves.
    await phone.open(f"?start={payload}")
    link, waiting = await begin(service)
    said = await phone.open(link)

    assert "ни к чему не привязан" in said
    assert await claim(service, waiting) is None
