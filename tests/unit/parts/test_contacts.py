"""Verified contacts: what is a phone number, and what is kept of it."""

import pytest

from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.subscribers.contacts import Contacts
from msgsvc_core.subscribers.contacts.models import normalized_contact
from msgsvc_devkit.core import PROJECT, MemoryCore


@pytest.mark.parametrize(
    ("given", "phone"),
    [
        ("+12025550123", "+12025550123"),
        ("12025550123", "+12025550123"),
        ("+1 (202) 555-0123", "+12025550123"),
        ("+44\u00a020\u20117183\u20118750", "+442071838750"),
        ("0012025550123", "+12025550123"),
        ("+49 (0)151 23456789", "+4915123456789"),
    ],
)
def test_a_phone_number_is_plus_and_digits(given: str, phone: str) -> None:
    assert normalized_contact("phone", given) == phone


@pytest.mark.parametrize(
    "given",
    [
        "",
        "+",
        "+123456",
        "+1234567890123456",
        "0012025550",
        "+999999999999999",
        "++12025550123",
        "+1202555O123",
        "+١٢٠٢٥٥٥٠١٢٣",
    ],
)
def test_what_is_no_phone_number_is_refused(given: str) -> None:
    with pytest.raises(ValueError, match=r"phone number|country code"):
        normalized_contact("phone", given)


async def test_a_contact_is_encrypted_for_its_row(core: MemoryCore, tx: Tx) -> None:
    await core.person(tx, "sub_1")
    await core.person(tx, "sub_2")
    await core.contacts.record(
        tx, PROJECT, "sub_1", kind="phone", value="+12025550123", source="messenger_a"
    )

    [row] = await tx.fetch_all("SELECT * FROM core_subscriber_contacts")
    assert "2025550123" not in str(dict(row))
    assert (await core.contacts.find(tx, PROJECT, "sub_1")).phone == "+12025550123"
    await tx.insert("core_subscriber_contacts", {**row, "subscriber_id": "sub_2"})
    assert await core.contacts.find(tx, PROJECT, "sub_2") == Contacts()


async def test_what_is_no_contact_is_not_in_the_error(core: MemoryCore, tx: Tx) -> None:
    await core.person(tx)
    with pytest.raises(ValidationFailed) as refused:
        await core.contacts.record(
            tx, PROJECT, "sub_1", kind="email", value="s3cret", source="messenger_a"
        )

    assert "s3cret" not in str(refused.value)
    assert "phone=" not in repr(Contacts(phone="+12025550123", phone_verified_at_ms=1))
