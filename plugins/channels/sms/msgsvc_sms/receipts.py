"""Delivery receipts: which message, and what became of it (SMPP 3.4, section 5.2.28 and appendix B)."""

import re
from dataclasses import dataclass
from typing import Literal

from msgsvc_sms.pdu import ShortMessage, Tlv, alphabet_of

#: What a receipt says. `waiting` is not the end: the centre still tries.
State = Literal["delivered", "failed", "waiting"]

#: How receipts write the id that the answer to `submit_sm` named: in the same way; in decimal where the
#: answer has hexadecimal; or the other way round.
ReceiptIds = Literal["same", "decimal", "hexadecimal"]

#: `message_state` (section 5.2.28).
_STATES: dict[int, State] = {
    0: "waiting",  # SCHEDULED, of SMPP 5.0
    1: "waiting",  # ENROUTE
    2: "delivered",
    3: "failed",  # EXPIRED
    4: "failed",  # DELETED
    5: "failed",  # UNDELIVERABLE
    6: "waiting",  # ACCEPTED
    7: "failed",  # UNKNOWN: the message is in an invalid state
    8: "failed",  # REJECTED
    9: "failed",  # SKIPPED, of SMPP 5.0
}

#: `stat:` of the text form (appendix B, table B-2), and words that other centres have besides.
_WORDS: dict[str, State] = {
    "ENROUTE": "waiting",
    "DELIVRD": "delivered",
    "EXPIRED": "failed",
    "DELETED": "failed",
    "UNDELIV": "failed",
    "ACCEPTD": "waiting",
    "UNKNOWN": "failed",
    "REJECTD": "failed",
    "FAILED": "failed",
    "SKIPPED": "failed",
    "ACKED": "waiting",
    "BUFFRED": "waiting",
    "BUFFERED": "waiting",
}

#: Characters of a state that are kept.
MOST_WORD = 16

_ID = re.compile(r"\bid:\s*(\S+)", re.IGNORECASE)
_STAT = re.compile(r"\bstat:\s*([A-Z]+)", re.IGNORECASE)
_ERR = re.compile(r"\berr:\s*(\w{1,8})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Receipt:
    """`detail` is the centre's word for the state, with its error code: no personal data."""

    message_id: str
    state: State
    detail: str
    error: str = ""


def read_receipt(message: ShortMessage) -> Receipt | None:
    """None for what names no message, or no state."""
    wide = alphabet_of(message.coding) == "utf-16-be"
    text = message.text_bytes.decode("utf-16-be" if wide else "latin-1", "replace")
    found_id = message.tlvs.get(Tlv.RECEIPTED_MESSAGE_ID, b"").rstrip(b"\0").decode("latin-1")
    if not found_id and (named := _ID.search(text)):
        found_id = named[1]
    code, word = message.tlvs.get(Tlv.MESSAGE_STATE, b""), _STAT.search(text)
    said = word[1].upper()[:MOST_WORD] if word else ""
    state = (_STATES.get(code[0]) if len(code) == 1 else None) or _state_of(said)
    if not found_id or state is None:
        return None
    detail = said or f"state {code[0]}"
    error = _ERR.search(text)
    code_of_error = error[1] if state == "failed" and error and error[1].strip("0") else ""
    if code_of_error:
        detail += f", error {code_of_error}"
    return Receipt(found_id, state, detail, code_of_error)


def _state_of(word: str) -> State | None:
    """Of a word of seven letters, as the standard has it, or written out: `DELIVERED`."""
    return next(
        (state for known, state in _WORDS.items() if word[:5] == known[:5] and word),
        None,
    )


def id_of_answer(message_id: str, ids: ReceiptIds) -> str:
    """The reference of a message by the id that the answer to `submit_sm` names."""
    return _normal(message_id, {"same": 0, "decimal": 16, "hexadecimal": 10}[ids])


def id_of_receipt(message_id: str, ids: ReceiptIds) -> str:
    """The same reference, by the id in a receipt."""
    return _normal(message_id, {"same": 0, "decimal": 10, "hexadecimal": 16}[ids])


def _normal(message_id: str, base: int) -> str:
    if base == 0:
        # Receipts of some centres are padded with zeros, or in the other case.
        return message_id.lower().lstrip("0") or message_id
    try:
        return str(int(message_id, base))
    except ValueError:
        # Some centres add letters to some ids: these are compared as they are.
        return message_id
