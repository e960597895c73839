"""Checks of what channels report of messages that the platform has accepted."""

import pytest

from msgsvc_core.channels import Channel, DeliveryReported, MessageReceived, Reason
from msgsvc_core.channels.updates import ReportedState
from msgsvc_devkit.conformance.inbox import Inbox
from msgsvc_devkit.conformance.messenger import Messenger
from msgsvc_devkit.conformance.stage import Stage, needs, plainest, sent

#: Milliseconds of any time in this century.
EARLIEST_MS = 946_684_800_000


class Reports(Stage):
    """`DeliveryReported`, where `capabilities.reports` says so."""

    @pytest.mark.parametrize("state", ["delivered", "read"])
    async def test_a_report_names_its_message_and_what_became_of_it(
        self,
        channel: Channel,
        messenger: Messenger,
        inbox: Inbox,
        chat_id: str,
        state: ReportedState,
    ) -> None:
        needs(state in channel.capabilities.reports, f"reports of messages that are {state}")
        takes = channel.capabilities
        await sent(channel, chat_id, plainest("another", takes))
        ref = await sent(channel, chat_id, plainest("reported", takes))
        await messenger.report(ref, state)
        report = await inbox.expect(DeliveryReported)

        assert report.message_ref == ref, (
            f"the report names {report.message_ref!r}, and `send` returned {ref!r}"
        )
        assert report.state == state, f"{state!r} was reported, {report.state!r} received"
        assert report.chat_id in {"", chat_id}, (
            f"chat_id is {report.chat_id!r}; make it what `send` takes, {chat_id!r}, or leave it empty"
        )
        assert report.at_ms is None or report.at_ms > EARLIEST_MS, (
            f"at_ms is {report.at_ms}: Unix time in milliseconds"
        )

    async def test_reports_of_one_message_have_different_update_ids(
        self, channel: Channel, messenger: Messenger, inbox: Inbox, chat_id: str
    ) -> None:
        needs(len(channel.capabilities.reports) > 1, "reports of more than one state of a message")
        ref = await sent(channel, chat_id, plainest("reported twice", channel.capabilities))
        reports = []
        for state in ("delivered", "read"):
            await messenger.report(ref, state)
            reports.append(await inbox.expect(DeliveryReported))
        ids = [report.update_id for report in reports]

        assert len(set(ids)) == len(ids), (
            f"two reports have the update_id {ids[0]!r}: the core would take the second for one that it"
            " has seen; add the state"
        )

    @pytest.mark.parametrize("state", ["delivered", "read"])
    async def test_a_report_of_everything_up_to_a_message_says_where_and_until_when(
        self,
        channel: Channel,
        messenger: Messenger,
        inbox: Inbox,
        chat_id: str,
        state: ReportedState,
    ) -> None:
        needs(state in channel.capabilities.reports, f"reports of messages that are {state}")
        ref = await sent(channel, chat_id, plainest("the last of several", channel.capabilities))
        await messenger.report(ref, state)
        report = await inbox.expect(DeliveryReported)
        needs(report.up_to_ms is not None, "reports of everything up to a message")

        assert report.chat_id == chat_id, (
            f"chat_id is {report.chat_id!r}: what was sent before is looked for in that chat, {chat_id!r}"
        )
        assert report.user.user_id == messenger.user.user_id, (
            f"user is {report.user.user_id!r}; name who has read, {messenger.user.user_id!r}"
        )
        assert report.up_to_ms is not None
        assert report.up_to_ms > EARLIEST_MS, (
            f"up_to_ms is {report.up_to_ms}: Unix time in milliseconds"
        )

    async def test_a_failure_that_is_reported_later_has_its_reason(
        self, channel: Channel, messenger: Messenger, inbox: Inbox, chat_id: str
    ) -> None:
        needs(bool(channel.capabilities.reports), "reports")
        ref = await sent(channel, chat_id, plainest("not delivered", channel.capabilities))
        await messenger.report(ref, "failed")
        report = await inbox.expect(DeliveryReported)

        assert (report.message_ref, report.state) == (ref, "failed"), (
            f"the platform did not deliver {ref!r}, and {report.state!r} of {report.message_ref!r} came"
        )
        assert report.reason is Reason.CHAT_NOT_FOUND, (
            f"the user can't be reached there, and the reason is {report.reason.value!r}. Map the"
            " platform's codes as those of refused calls: the reason decides whether the person is"
            " unsubscribed"
        )
        assert report.detail, "detail is empty: give the platform's words, for people"

    async def test_a_report_of_no_known_kind_is_skipped(
        self, channel: Channel, messenger: Messenger, inbox: Inbox, chat_id: str
    ) -> None:
        needs(bool(channel.capabilities.reports), "reports")
        ref = await sent(channel, chat_id, plainest("reported", channel.capabilities))
        await messenger.report(ref, "accepted")
        known: ReportedState = min(channel.capabilities.reports)
        await messenger.report(ref, known)
        report = await inbox.expect(DeliveryReported)

        assert report.state == known, (
            f"that the platform has accepted the message became {report.state!r}: `send` has told that"
        )
        await messenger.write("after it")
        received = await inbox.expect(MessageReceived)
        assert received.text == "after it", f"instead of the text after it, {received} came"
