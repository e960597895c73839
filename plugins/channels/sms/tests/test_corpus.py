"""Each delivery of the corpus becomes what the table beside it says."""

from pathlib import Path

from structlog.testing import capture_logs

from msgsvc_core.channels import Channel, Update
from msgsvc_devkit.corpora import outcome_of, read_corpus
from msgsvc_devkit.platforms.sms import FakeSmsCentre, wire

from .conftest import ChannelFactory

CORPUS = read_corpus(Path(__file__).parent / "corpus" / "deliveries.md")

PERSON, SENDER = "+4915120000001", "+4915110000000"


def body_of(raw: str) -> bytes:
    """The body of a `deliver_sm`, by its fields that are not the usual ones, in hexadecimal."""
    fields = dict(field.split("=") for field in raw.split())
    if "raw" in fields:
        return bytes.fromhex(fields["raw"])
    body = wire.deliver_body(
        fields.get("from", PERSON),
        SENDER,
        bytes.fromhex(fields.get("text", "")),
        coding=int(fields.get("coding", "00"), 16),
        esm_class=int(fields.get("esm", "00"), 16),
        tlvs={
            int(name.removeprefix("tlv"), 16): bytes.fromhex(value)
            for name, value in fields.items()
            if name.startswith("tlv")
        },
    )
    # The kind of the sender's number comes after the type of service, which is empty.
    return (
        body[:1]
        + bytes.fromhex(fields.get("ton", "01"))
        + body[2:]
        + bytes.fromhex(fields.get("tail", ""))
    )


class Inbox:
    """A channel that is read after each delivery."""

    def __init__(self, channel: Channel, centre: FakeSmsCentre) -> None:
        self._channel = channel
        self._centre = centre
        self._cursor: str | None = None
        self._deliveries = 0

    async def outcome(self, raw: str) -> str:
        with capture_logs() as logs:
            for each in raw.split(";"):
                self._centre.deliver(body_of(each))
            # Deliveries are read in their order: what comes after the last one is read after it.
            self._deliveries += 1
            last = f"That is all of {self._deliveries}."
            self._centre.deliver(wire.deliver_body(PERSON, SENDER, last.encode()))
            updates: list[Update] = []
            while not any(getattr(update, "text", "") == last for update in updates):
                polled = await self._channel.poll_updates(self._cursor)
                self._cursor = polled.cursor
                updates += polled.updates
        return outcome_of((one for one in updates if getattr(one, "text", "") != last), logs)


async def test_a_delivery_becomes_what_the_table_says(
    make_channel: ChannelFactory, centre: FakeSmsCentre
) -> None:
    inbox = Inbox(await make_channel(), centre)
    found = {item.name: await inbox.outcome(item.raw) for item in CORPUS}

    assert found == {item.name: item.becomes for item in CORPUS}
