"""Signing in by a messenger that somebody linked before: asked, answered, and by nobody else."""

from itertools import count
from typing import Any

import pytest

from msgsvc_core.channels import (
    ButtonPressed,
    Capabilities,
    ChannelUser,
    MessageReceived,
    Started,
)
from msgsvc_core.members.links import MemberLinks
from msgsvc_core.members.models import AddMemberBody
from msgsvc_core.service import Service
from msgsvc_dashboard.accounts import Accounts, MessengerSignIn, PasswordChanges
from msgsvc_dashboard.accounts.models import RequestPurpose
from msgsvc_devkit import FakeClock, RecordingChannel, settled
from plugins.areas.dashboard.tests.accounts.people import browser, new_account

ANN = ChannelUser("1001", "Ann", "ann_k", "en")
EVE = ChannelUser("6666", "Eve", None, "ru")

_numbers = count(1)

_RUSSIAN = {"Cancel": "Отмена"}


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

    @property
    def offered(self) -> list[int]:
        """The numbers that the last question offers."""
        return [int(button.text) for button in self.channel.sent[-1].message.buttons[0]]

    async def press(self, label: int | str, sent: int = -1) -> str:
        """What the question becomes, when the button of that label is pressed."""
        question = self.channel.sent[sent]
        [data] = [
            button.data
            for row in question.message.buttons
            for button in row
            if button.text in {str(label), _RUSSIAN.get(str(label))}
        ]
        reference = question.message_ref
        await self._receive(
            ButtonPressed, data=data, message_ref=reference, button_ref=f"b{next(_numbers)}"
        )
        return str(self.channel.edited[-1].message.text) if self.channel.edited else ""

    async def write(self, text: str) -> None:
        await self._receive(MessageReceived, text=text, message_ref=f"w{next(_numbers)}")

    async def _receive(self, kind: Any, **values: Any) -> None:
        update = kind(
            update_id=str(next(_numbers)), chat_id=self._user.user_id, user=self._user, **values
        )
        await self._service.inbound.receive("messenger_a", update)
        await settled(self._service)


async def begin(
    service: Service, purpose: RequestPurpose = "sign_in", account_id: str | None = None
) -> tuple[str, str, int]:
    """(the link to the bot, the secret of the browser that waits, the number on its page)"""
    async with service.db.transaction() as tx:
        begun = await service.get(MessengerSignIn).begin(tx, purpose, browser(), account_id)
    ways = service.get(MessengerSignIn).ways(begun.token)
    [link] = [way.link for way in ways if way.channel == "messenger_a"]
    return link, begun.secret, begun.number


async def claim(service: Service, waiting: str) -> str | None:
    async with service.db.transaction() as tx:
        return await service.get(MessengerSignIn).claim(tx, waiting)


async def test_a_linked_messenger_signs_its_account_in_once(
    service: Service, clock: FakeClock
) -> None:
    ann = await new_account(service)
    phone = Phone(service, ANN)
    link, linking, number = await begin(service, "link", ann.account_id)
    asked = await phone.open(link)
    linked = await phone.press(number)

    link, waiting, number = await begin(service)
    early = await claim(service, waiting)
    clock.advance(120)
    question = await phone.open(link)
    done = await phone.press(number)
    again = await phone.press(number)

    assert ann.email in asked
    assert "From now on" in linked
    assert "Press the number that the page shows." in question
    assert "Firefox on Linux" in question
    assert "203.0.113.7" in question
    assert "2 minutes ago" in question
    assert "You are signed in" in done
    assert "no longer valid" in again
    assert early is None
    assert await claim(service, linking) is None
    assert await claim(service, waiting) == ann.account_id
    assert await claim(service, waiting) is None


async def linked(service: Service, phone: Phone, account_id: str) -> str:
    """What the person is told, when they have linked their messenger."""
    link, _, number = await begin(service, "link", account_id)
    await phone.open(link)
    return await phone.press(number)


@pytest.mark.parametrize("purpose", ["sign_in", "link"])
async def test_whoever_does_not_see_the_page_has_one_guess(
    service: Service, purpose: RequestPurpose
) -> None:
    ann, eve = await new_account(service), await new_account(service, "eve@x.example")
    phone = Phone(service, ANN)
    await linked(service, phone, ann.account_id)
    account_id = eve.account_id if purpose == "link" else None
    link, waiting, number = await begin(service, purpose, account_id)
    # Opened twice, it offers the same: the one that both have would be the right one.
    await phone.open(link)
    first = phone.offered
    await phone.open(link)
    offered = phone.offered
    wrong = next(each for each in offered if each != number)
    said = await phone.press(wrong)
    again = await phone.press(number)

    assert offered == first
    assert len(set(offered)) == 3
    assert number in offered
    assert "not the number on the page" in said
    assert "no longer valid" in again
    assert await claim(service, waiting) is None


@pytest.mark.both_databases
async def test_on_a_messenger_without_buttons_the_number_is_written(
    service: Service, clock: FakeClock
) -> None:
    ann = await new_account(service)
    phone = Phone(service, ANN)
    phone.channel.capabilities = Capabilities(buttons="words", start_links=False)
    async with service.db.transaction() as tx:
        linking = await service.get(MessengerSignIn).begin(tx, "link", browser(), ann.account_id)
    starts = [way.start_message for way in service.get(MessengerSignIn).ways(linking.token)]
    await phone.write(next(text for text in starts if text is not None))
    question = phone.channel.sent[-1].message.text
    await phone.write(str(linking.number))
    said = phone.channel.sent[-1].message.text

    async with service.db.read() as tx:
        [found] = await service.get(MessengerSignIn).linked(tx, ann.account_id)
    assert str(linking.number) in question
    assert "From now on" in said
    assert found.user_id == ANN.user_id


async def test_cancel_strangers_late_answers_and_foreign_presses_sign_nobody_in(
    service: Service, clock: FakeClock
) -> None:
    ann = await new_account(service)
    phone, eve = Phone(service, ANN), Phone(service, EVE)
    await linked(service, phone, ann.account_id)

    link, waiting, number = await begin(service)
    stranger = await eve.open(link)
    await phone.open(link)
    edits = len(phone.channel.edited)
    await eve.press(number)
    cancelled = await phone.press("Cancel")
    late_link, late, number = await begin(service)
    await phone.open(late_link)
    clock.advance(601)
    said = await phone.press(number)
    unlinked_link, unlinked, number = await begin(service)
    await phone.open(unlinked_link)
    async with service.db.transaction() as tx:
        await service.get(MessengerSignIn).unlink(tx, ann.account_id, "messenger_a", ANN.user_id)
    after = await phone.press(number)

    assert "ещё не привязан" in stranger
    assert (cancelled, len(phone.channel.edited) - edits) == ("Cancelled.", 3)
    assert "no longer valid" in said
    assert "is not linked to an account" in after
    for secret in (waiting, late, unlinked):
        assert await claim(service, secret) is None


@pytest.mark.both_databases
async def test_no_press_moves_a_messenger_to_another_account_before_it_is_unlinked(
    service: Service,
) -> None:
    ann, eve = await new_account(service), await new_account(service, "eve@x.example")
    phone = Phone(service, ANN)
    await linked(service, phone, ann.account_id)
    refused = await linked(service, phone, eve.account_id)
    link, waiting, number = await begin(service)
    await phone.open(link)
    await phone.press(number)
    still = await claim(service, waiting)
    async with service.db.transaction() as tx:
        await service.get(MessengerSignIn).unlink(tx, ann.account_id, "messenger_a", ANN.user_id)
    taken = await linked(service, phone, eve.account_id)

    assert "is linked to another account" in refused
    assert still == ann.account_id
    assert "From now on" in taken


async def test_a_reset_leaves_nobody_signed_in_and_no_messenger(service: Service) -> None:
    ann = await new_account(service)
    await linked(service, Phone(service, EVE), ann.account_id)
    async with service.db.transaction() as tx:
        await service.get(Accounts).open_session(tx, ann.account_id, ip="", user_agent="")
        await service.get(PasswordChanges).reset(tx, ann.account_id)

    async with service.db.read() as tx:
        assert await service.get(MessengerSignIn).linked(tx, ann.account_id) == []
        assert await service.get(Accounts).sessions_of(tx, ann.account_id) == []


async def test_a_new_password_ends_what_waits_for_an_answer(service: Service) -> None:
    ann = await new_account(service)
    phone, eve = Phone(service, ANN), Phone(service, EVE)
    await linked(service, phone, ann.account_id)
    foreign, _, foreign_number = await begin(service, "link", ann.account_id)
    await eve.open(foreign)
    link, waiting, number = await begin(service)
    await phone.open(link)
    await phone.press(number)
    hashed = await service.get(PasswordChanges).hashed("another one, quite long", ann.email)

    async with service.db.transaction() as tx:
        await service.get(PasswordChanges).set_password(tx, ann.account_id, hashed)
    await eve.press(foreign_number, sent=1)

    async with service.db.read() as tx:
        found = await service.get(MessengerSignIn).linked(tx, ann.account_id)
    assert [each.user_id for each in found] == [ANN.user_id]
    assert await claim(service, waiting) is None


async def test_a_members_link_opens_nobodys_account(service: Service) -> None:
    ann = await new_account(service)
    project = await service.projects.create("Shop")
    phone = Phone(service, EVE)
    async with service.db.transaction() as tx:
        body = AddMemberBody(name="Ann", email=ann.email, role="agent")
        member = await service.members.add(tx, project.project_id, body)
        await service.members.link_account(tx, project.project_id, member.member_id, ann.account_id)
        payload, _ = await service.get(MemberLinks).create(
            tx, project.project_id, member.member_id, 600
        )
    # Whoever manages the project has that link, and opens it themselves.
    await phone.open(f"?start={payload}")
    link, waiting, _ = await begin(service)
    said = await phone.open(link)

    assert "ещё не привязан" in said
    assert await claim(service, waiting) is None
