"""Ids of chats that another program has stored."""

import pytest

from msgsvc_core.kernel.errors import InvalidValue


def test_the_id_of_a_person_is_that_of_the_chat_with_them(channel) -> None:
    assert channel.parse_chat_id("1099511627775") == "1099511627775"


@pytest.mark.parametrize(
    "text", ["-5", "-1001234567890", "0", "01", "1099511627776", "@anna", "1 2", "", "١٢"]
)
def test_groups_names_and_what_is_no_id_are_refused(channel, text: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        channel.parse_chat_id(text)

    assert not text or text not in str(refused.value)
