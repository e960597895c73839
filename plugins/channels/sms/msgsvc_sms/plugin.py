"""Hook implementations of the SMS channels."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgsvc_core.channels import ChannelKind, ChatColours, MessengerLook
from msgsvc_core.db import MigrationSource
from msgsvc_core.db.personal_data import PersonalData
from msgsvc_core.events import EventSpec
from msgsvc_core.jobs import JobSpec
from msgsvc_core.plugins.context import PluginContext
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.security.sealed import SealedColumn
from msgsvc_sms.events import SMS_EVENTS
from msgsvc_sms.http import HttpChannel
from msgsvc_sms.jobs import SmsJobs
from msgsvc_sms.operators import Operators
from msgsvc_sms.personal_data import PERSONAL_DATA
from msgsvc_sms.settings import (
    HTTP_OPERATOR_SETTINGS,
    SMPP_OPERATOR_SETTINGS,
    HttpSettings,
    SmppSettings,
)
from msgsvc_sms.smpp import SmppChannel

HERE = Path(__file__).parent

#: A speech bubble with three lines of text, drawn for this plugin.
MARK = (
    "M4 3h16a2 2 0 0 1 2 2v11a2 2 0 0 1-2 2h-8l-5 4v-4H4a2 2 0 0 1-2-2V5a2 2 0 0 1 2-2zM6 6.5v1.6h12V6.5z"
    "M6 9.7v1.6h12V9.7zM6 12.9v1.6h7v-1.6z"
)

#: Grey bubbles on a plain ground, as telephones show texts from others.
LOOK = MessengerLook(
    light=ChatColours(ground="#ffffff", bubble="#e9e9eb", text="#111111", link="#0b57d0"),
    dark=ChatColours(ground="#101010", bubble="#2c2c2e", text="#f2f2f2", link="#8ab4f8"),
)

#: What the kinds share.
_SHARED: Mapping[str, Any] = {"title": "SMS", "mark": MARK, "look": LOOK}


@hookimpl
def register_channel_kinds() -> Sequence[ChannelKind]:
    return [
        ChannelKind(
            "sms",
            SmppSettings,
            SmppChannel,
            SMPP_OPERATOR_SETTINGS,
            about="SMS, by SMPP 3.4 to a message centre",
            **_SHARED,
        ),
        ChannelKind(
            "sms_http",
            HttpSettings,
            HttpChannel,
            HTTP_OPERATOR_SETTINGS,
            about="SMS, by a provider's HTTP API",
            **_SHARED,
        ),
    ]


@hookimpl
def register_events() -> Sequence[EventSpec]:
    return SMS_EVENTS


@hookimpl
def register_migrations() -> MigrationSource:
    return MigrationSource("sms", HERE / "migrations")


@hookimpl
def register_locale() -> Path:
    return HERE / "locale"


@hookimpl
def register_sealed() -> Sequence[SealedColumn]:
    return [
        SealedColumn(
            table="sms_inbox",
            column="sealed",
            key=("channel", "item_id"),
            holds="{count} received texts that nobody has read yet",
            if_lost="They are lost; who wrote them has to write again.",
            is_lasting=False,
        ),
        SealedColumn(
            table="sms_parts",
            column="sealed",
            key=("channel", "sender_hash", "reference", "total"),
            holds="{count} texts of which parts are missing",
            if_lost="They are lost; who wrote them has to write again.",
            is_lasting=False,
        ),
    ]


@hookimpl
def register_personal_data() -> Sequence[PersonalData]:
    return PERSONAL_DATA


@hookimpl
def create_plugin(context: PluginContext) -> "SmsPlugin":
    return SmsPlugin(context)


class SmsPlugin:
    """The plugin's objects, which its channels find."""

    def __init__(self, context: PluginContext) -> None:
        self._operators = Operators(events=context.events, registry=context.metrics.registry)
        self._jobs = SmsJobs(clock=context.clock)

    @hookimpl
    def register_services(self) -> Mapping[type, Any]:
        return {Operators: self._operators}

    @hookimpl
    def register_jobs(self) -> Sequence[JobSpec]:
        return self._jobs.specs()
