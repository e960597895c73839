"""Channels that break one promise each about reports, and the checks of the kit that have to notice."""

from dataclasses import replace
from typing import Any

from msgsvc_core.channels import DeliveryReported, Reason, Update
from msgsvc_core.channels.updates import NOBODY
from tests.contracts.broken_channels import breaks
from tests.contracts.pigeon import PigeonChannel


class Reporting(PigeonChannel):
    """Changes each report."""

    def changed(self, report: DeliveryReported) -> DeliveryReported:
        return report

    def typed(self, update: Any) -> Update:
        read = super().typed(update)
        return self.changed(read) if isinstance(read, DeliveryReported) else read


@breaks("test_a_report_names_its_message_and_what_became_of_it")
class NamesTheUpdate(Reporting):
    def changed(self, report: DeliveryReported) -> DeliveryReported:
        return replace(report, message_ref=report.update_id)


@breaks("test_a_report_names_its_message_and_what_became_of_it")
class ReadIsDelivered(Reporting):
    def changed(self, report: DeliveryReported) -> DeliveryReported:
        return replace(report, state="delivered" if report.state == "read" else report.state)


@breaks("test_a_report_names_its_message_and_what_became_of_it")
class ReportsSeconds(Reporting):
    def changed(self, report: DeliveryReported) -> DeliveryReported:
        return replace(report, at_ms=(report.at_ms or 0) // 1000)


@breaks("test_reports_of_one_message_have_different_update_ids")
class NumbersByMessage(Reporting):
    def changed(self, report: DeliveryReported) -> DeliveryReported:
        return replace(report, update_id=f"report:{report.message_ref}")


@breaks("test_a_failure_that_is_reported_later_has_its_reason")
class GivesNoReason(Reporting):
    def changed(self, report: DeliveryReported) -> DeliveryReported:
        return replace(report, reason=Reason.UNKNOWN)


@breaks("test_a_report_of_no_known_kind_is_skipped")
class AcceptedIsDelivered(PigeonChannel):
    def typed(self, update: Any) -> Update:
        if update.get("state") == "accepted":
            report = super().typed({**update, "state": "delivered"})
            assert isinstance(report, DeliveryReported)
            return replace(report, state="read")
        return super().typed(update)


class ReportingUpTo(Reporting):
    """Reports everything up to a message."""

    def changed(self, report: DeliveryReported) -> DeliveryReported:
        return replace(report, up_to_ms=report.at_ms)


@breaks("test_a_report_of_everything_up_to_a_message_says_where_and_until_when")
class TellsNoChatOfWhatWasBefore(ReportingUpTo):
    def changed(self, report: DeliveryReported) -> DeliveryReported:
        return replace(super().changed(report), chat_id="")


@breaks("test_a_report_of_everything_up_to_a_message_says_where_and_until_when")
class TellsNotWhoHasRead(ReportingUpTo):
    def changed(self, report: DeliveryReported) -> DeliveryReported:
        return replace(super().changed(report), user=NOBODY)


@breaks("test_a_report_of_everything_up_to_a_message_says_where_and_until_when")
class ReportsUpToSeconds(ReportingUpTo):
    def changed(self, report: DeliveryReported) -> DeliveryReported:
        return replace(super().changed(report), up_to_ms=(report.at_ms or 0) // 1000)
