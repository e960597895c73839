"""Alphabets, parts, units of the protocol, receipts, and templates, each by itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msgsvc_sms import gsm, pdu, templates
from msgsvc_sms.gsm import Concatenation, split
from msgsvc_sms.pdu import Address, Malformed, ShortMessage
from msgsvc_sms.receipts import Receipt, ReceiptIds, id_of_answer, id_of_receipt, read_receipt


@pytest.mark.parametrize(
    ("text", "alphabet", "parts"),
    [
        ("x" * 160, "gsm", 1),
        ("x" * 161, "gsm", 2),
        ("x" * 306, "gsm", 2),
        ("x" * 307, "gsm", 3),
        ("€" * 80, "gsm", 1),
        ("€" * 81, "gsm", 2),
        ("я" * 70, "ucs2", 1),
        ("я" * 71, "ucs2", 2),
        ("😀" * 35, "ucs2", 1),
        ("😀" * 36, "ucs2", 2),
    ],
)
def test_a_text_has_as_many_parts_as_the_standard_says(
    text: str, alphabet: str, parts: int
) -> None:
    found = split(text)

    assert (found.alphabet, len(found.parts)) == (alphabet, parts)


def test_a_larger_reference_leaves_less_room() -> None:
    assert [len(part) for part in split("x" * 304, 16).parts] == [152, 152]
    assert [len(part) for part in split("я" * 67, 16).parts] == [134]
    assert [len(part) for part in split("я" * 132, 16).parts] == [132, 132]


def test_no_character_is_cut_in_two() -> None:
    escaped = split("x" * 152 + "€" + "x" * 10).parts
    emoji = split("я" * 66 + "😀" + "я" * 10).parts

    assert [len(part) for part in escaped] == [152, 12]
    assert [len(part) for part in emoji] == [132, 24]


@given(st.text(alphabet=[*gsm.EXTENSION, *"@£ΔÆ az\n09ñ"], max_size=600))
def test_what_is_written_in_the_gsm_alphabet_is_read_again(text: str) -> None:
    found = split(text)

    assert found.alphabet == "gsm"
    assert "".join(map(gsm.decode_gsm, found.parts)) == text


@given(st.text(max_size=600))
def test_any_text_is_read_again_from_its_parts(text: str) -> None:
    found = split(text)
    whole = (
        "".join(map(gsm.decode_gsm, found.parts))
        if found.alphabet == "gsm"
        else b"".join(found.parts).decode("utf-16-be")
    )

    assert whole == text


@pytest.mark.parametrize("bits", [8, 16])
def test_a_header_is_read_again(bits: gsm.ReferenceBits) -> None:
    part = Concatenation(200, 3, 2)

    assert gsm.read_header(gsm.header(part, bits) + b"text") == (part, b"text")


@pytest.mark.parametrize("header", [b"", b"\x05\x00\x03", b"\x03\x00\x09\x01"])
def test_a_header_that_is_cut_off_is_refused(header: bytes) -> None:
    with pytest.raises(ValueError, match="header"):
        gsm.read_header(header)


def test_a_part_beyond_the_last_is_no_part() -> None:
    assert gsm.read_header(b"\x05\x00\x03\x01\x02\x03text") == (None, b"text")


def test_a_short_message_is_read_again() -> None:
    message = ShortMessage(
        Address("Shop", 5, 0),
        Address("4915120000001"),
        b"Hello",
        coding=3,
        esm_class=0x40,
        service_type="CMT",
        registered_delivery=1,
        tlvs={0x0427: b"\x02"},
    )

    assert pdu.read_short_message(bytes(message)) == message


@given(st.binary(max_size=120))
def test_any_bytes_are_read_or_malformed(body: bytes) -> None:
    try:
        found = pdu.read_short_message(body)
    except Malformed:
        return
    assert isinstance(found.content, bytes)


@pytest.mark.parametrize("length", [0, 15, 70_001, 0xFFFFFFFF])
def test_a_unit_of_an_impossible_length_is_malformed(length: int) -> None:
    with pytest.raises(Malformed):
        pdu.read_header(length.to_bytes(4) + bytes(12))


@pytest.mark.parametrize(
    ("coding", "alphabet"),
    [
        *((coding, "default") for coding in (0x00, 0x10, 0x11, 0x13, 0x50, 0xC0, 0xD8, 0xF0, 0xF1)),
        *((coding, "utf-16-be") for coding in (0x08, 0x18, 0x19, 0x58, 0xE0, 0xE8)),
        *((coding, "octets") for coding in (0x02, 0x04, 0x09, 0x14, 0x34, 0x80, 0xF4, 0xF5)),
        (0x01, "ascii"),
        (0x03, "latin-1"),
        (0x06, "iso8859-5"),
    ],
)
def test_a_coding_names_its_alphabet_whatever_else_it_says(coding: int, alphabet: str) -> None:
    assert pdu.alphabet_of(coding) == alphabet


def receipt(text: bytes, **tlvs: bytes) -> Receipt | None:
    tags = {"id": 0x001E, "state": 0x0427}
    return read_receipt(
        ShortMessage(
            Address("1"),
            Address("2"),
            text,
            esm_class=4,
            tlvs={tags[name]: value for name, value in tlvs.items()},
        )
    )


def test_a_receipt_in_ucs2_and_one_with_words_written_out_are_read() -> None:
    wide = ShortMessage(
        Address("1"),
        Address("2"),
        "id:7 stat:DELIVRD".encode("utf-16-be"),
        coding=8,
        esm_class=4,
    )

    assert read_receipt(wide) == Receipt("7", "delivered", "DELIVRD")
    assert receipt(b"id:7 stat:DELIVERED") == Receipt("7", "delivered", "DELIVERED")
    assert receipt(b"id:7 stat:UNDELIVERABLE err:1") == Receipt(
        "7", "failed", "UNDELIVERABLE, error 1", "1"
    )
    assert receipt(b"id:7 stat:PENDING") is None


@pytest.mark.parametrize(
    ("answer", "told"), [("42", "0000000042"), ("00A1", "a1"), ("msg-1", "MSG-1"), ("0", "0")]
)
def test_ids_of_one_form_are_the_same_with_zeros_before_them_and_in_any_case(
    answer: str, told: str
) -> None:
    assert id_of_answer(answer, "same") == id_of_receipt(told, "same")


def test_a_receipt_is_read_from_its_text_or_its_parameters() -> None:
    text = b"id:0A1b sub:001 dlvrd:000 submit date:2611281200 done date:2611281201 stat:%s err:%s text:"

    assert receipt(text % (b"DELIVRD", b"000")) == Receipt("0A1b", "delivered", "DELIVRD")
    assert receipt(text % (b"UNDELIV", b"034")) == Receipt(
        "0A1b", "failed", "UNDELIV, error 034", "034"
    )
    assert receipt(b"", id=b"77\0", state=b"\x03") == Receipt("77", "failed", "state 3")
    assert receipt(text % (b"ENROUTE", b"000"), id=b"77\0", state=b"\x02") == Receipt(
        "77", "delivered", "ENROUTE"
    )
    assert receipt(b"stat:DELIVRD") is None
    assert receipt(b"id:5 stat:WHATEVER") is None


@pytest.mark.parametrize(
    ("ids", "answer", "told"),
    [
        ("same", "00Af", "00Af"),
        ("decimal", "0A1B2C", "662316"),
        ("decimal", "0A1B2C", "0000662316"),
        ("hexadecimal", "662316", "A1B2C"),
        ("decimal", "not-a-number", "not-a-number"),
    ],
)
def test_ids_of_receipts_are_those_of_answers(ids: ReceiptIds, answer: str, told: str) -> None:
    assert id_of_answer(answer, ids) == id_of_receipt(told, ids)


def test_values_never_change_what_a_template_is() -> None:
    values = {"text": '", "to": "+1", {to} & <b>', "to": "+49 1", "secret": "s"}
    template = '{"to": "{to}", "list": [{"text": "{text}"}], "flag": true}'

    assert templates.in_json(template, values) == {
        "to": "+49 1",
        "list": [{"text": values["text"]}],
        "flag": True,
    }
    assert templates.in_form("a={text}\n\nb = {to}", values) == {"a": values["text"], "b": "+49 1"}
    assert templates.in_url("https://x.example/?t={text}", {"text": "a&b=c d"}) == (
        "https://x.example/?t=a%26b%3Dc%20d"
    )


def test_a_place_is_found_in_objects_and_lists() -> None:
    found = {"messages": [{"id": 7, "ok": True}], "n": None}

    assert templates.at(found, "messages.0.id") == "7"
    assert templates.at(found, "messages.1.id") is None
    assert templates.at(found, "messages.0.ok") is None
    assert templates.at(found, "n") is None
    assert templates.at([], "messages") is None


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("\u201cHi\u201d \u2013 it\u2019s\u00a0me\u2026", '"Hi" - it\'s me...'),
        ("plain", "plain"),
        # Another alphabet is needed anyway.
        ("\u00abПривет\u00bb", "\u00abПривет\u00bb"),
    ],
)
def test_typographic_characters_are_replaced_where_that_saves_an_alphabet(
    text: str, sent: str
) -> None:
    assert gsm.plain(text) == sent


@given(st.text(alphabet=[*gsm.EXTENSION, *"@£Δ az\n09"], min_size=1, max_size=60))
def test_as_many_characters_fit_as_is_promised(text: str) -> None:
    most = gsm.longest(text, 4)
    assert most is not None
    filled = text + "x" * (most - len(text))

    assert len(split(filled, 16).parts) <= 4
