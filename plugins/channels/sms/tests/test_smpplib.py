"""smpplib, a client that others wrote for the protocol, works with the fake message centre."""

import asyncio
from typing import Any

import pytest
from smpplib import client, consts, exceptions, gsm

from msgsvc_devkit.platforms.sms import FakeSmsCentre, Person
from msgsvc_devkit.platforms.sms.centre import PASSWORD, SENDER, SYSTEM_ID


def bound(centre: FakeSmsCentre, password: str = PASSWORD) -> Any:
    smpp = client.Client("127.0.0.1", centre.port, timeout=5, allow_unknown_opt_params=True)
    smpp.connect()
    try:
        smpp.bind_transceiver(system_id=SYSTEM_ID, password=password)
    except exceptions.PDUError:
        smpp.disconnect()
        raise
    return smpp


async def test_it_sends_long_texts_and_reads_receipts_and_texts(
    centre: FakeSmsCentre, ann: Person
) -> None:
    text = "Длинный текст. " * 10
    got: list[Any] = []

    def converse() -> list[str]:
        smpp, ids = bound(centre), []
        smpp.set_message_sent_handler(lambda pdu: ids.append(pdu.message_id.decode()))
        smpp.set_message_received_handler(lambda pdu: got.append(pdu) or consts.SMPP_ESME_ROK)
        parts, coding, kind = gsm.make_parts(text)
        for part in parts:
            smpp.send_message(
                source_addr_ton=consts.SMPP_TON_INTL,
                source_addr_npi=consts.SMPP_NPI_ISDN,
                source_addr=SENDER[1:],
                dest_addr_ton=consts.SMPP_TON_INTL,
                dest_addr_npi=consts.SMPP_NPI_ISDN,
                destination_addr=ann.number[1:],
                short_message=part,
                data_coding=coding,
                esm_class=kind,
                registered_delivery=True,
            )
        while len(ids) < len(parts) or len(got) < len(parts) + 1:
            smpp.read_once()
        smpp.unbind()
        smpp.disconnect()
        return ids

    centre.write(ann, "Hello")
    ids = await asyncio.to_thread(converse)

    assert [each.text for each in ann.messages] == [text]
    assert [message_id for message_id, _ in centre.submitted] == ids
    assert got[0].short_message == b"Hello"
    assert sorted(each.receipted_message_id.decode().rstrip("\0") for each in got[1:]) == ids
    assert not centre.violations


async def test_it_is_refused_with_another_password(centre: FakeSmsCentre) -> None:
    with pytest.raises(exceptions.PDUError, match="Invalid Password"):
        await asyncio.to_thread(bound, centre, "wrong")
