"""What becomes of mails and reports as programs write them: `tests/mails` has them, with their outcomes."""

import csv
import tomllib
from html import escape
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from msgsvc_core.channels import (
    Blocked,
    DeliveryReported,
    MessageReceived,
    Unreadable,
    UnreadableReason,
    Update,
)
from msgsvc_core.security.secret_box import SecretBox
from msgsvc_email.mail import UnreadableMail, read_mail
from msgsvc_email.settings import EmailSettings
from msgsvc_email.tokens import Tokens
from msgsvc_email.updates import ArrivedMail, InboundMail

MAILS = Path(__file__).parents[1] / "mails"

TOKENS = Tokens(SecretBox(["a" * 32]), "mail", "shop.example")
SETTINGS = EmailSettings.model_validate(
    {
        "host": "mx.shop.example",
        "sender": "news@shop.example",
        "imap": {
            "host": "mx.shop.example",
            "username": "news",
            "password": "x",
            "authserv_id": "mx.shop.example",
        },
    }
)

#: The id of a message of the service to Ann.
REF = TOKENS.message_id("msg_1", "ann@people.example")

#: Outcome, text or address, and verdict on it.
Outcome = tuple[str, str, str]


#: What is told apart among mails that are kept on the shelf.
OF_KEPT: dict[UnreadableReason, Outcome] = {
    UnreadableReason.AUTOMATIC: ("automatic", "", ""),
    UnreadableReason.UNMATCHED: ("report", "", "nothing"),
}


def table(name: str) -> list[dict[str, str]]:
    with (MAILS / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def mails(name: str) -> dict[str, Any]:
    return tomllib.loads((MAILS / name).read_text("utf-8"))


def headed(fields: str = "", rest: str = "\n\nWhere is it?\n") -> str:
    """A mail from Ann with these fields; `-From` takes one out."""
    given = fields.replace("\\n", "\n").replace("\\t", "\t")
    usual = {
        "From": "Ann <ann@people.example>",
        "To": "news@shop.example",
        "Subject": "Re: News",
        "Date": "Fri, 27 Nov 2026 10:00:00 +0100",
        "Message-ID": "<1@people.example>",
    }
    named = {
        line.partition(":")[0].strip(" -").lower()
        for line in f"{given}{rest}".split("\n\n")[0].split("\n")
    }
    lines = [f"{name}: {value}" for name, value in usual.items() if name.lower() not in named]
    proof = "Authentication-Results: mx.shop.example; dmarc=pass header.from=people.example"
    return (
        "\n".join([proof, *lines, *([] if given.startswith("-") or not given else [given])]) + rest
    )


def outcome_of(raw: bytes) -> tuple[Outcome, list[Update]]:
    try:
        mail = read_mail(raw)
    except UnreadableMail:
        return ("unreadable", "", ""), []
    with capture_logs() as logs:
        updates = InboundMail(SETTINGS, TOKENS, "mail").updates(mail, ArrivedMail(raw, "1:1"))
    if updates and isinstance(kept := updates[0], Unreadable):
        return OF_KEPT.get(kept.reason, ("unreadable", "", "")), updates
    if any(each["event"] == "email_skipped" for each in logs):
        return ("automatic", "", ""), updates
    if not updates:
        return ("report", "", "nothing"), updates
    if isinstance(updates[0], MessageReceived):
        return ("message", updates[0].text, ""), updates
    return _reported(updates), updates


def _reported(updates: list[Update]) -> Outcome:
    failed = [one for one in updates if isinstance(one, DeliveryReported)]
    blocked = [one for one in updates if isinstance(one, Blocked)]
    assert all(one.message_ref == REF for one in failed)
    if not failed:
        return "report", blocked[0].chat_id, "complaint"
    assert failed[0].reason is not None
    assert [one.chat_id for one in blocked] == ["ann@people.example"] * (
        failed[0].reason == "chat_not_found"
    )
    return "report", "ann@people.example", failed[0].reason.value


@pytest.mark.parametrize("row", table("heads.csv"), ids=lambda row: row["name"])
def test_mails_whose_heads_differ(row: dict[str, str]) -> None:
    outcome, updates = outcome_of(headed(row["fields"]).encode())

    assert outcome == (row["outcome"], row["says"], "")
    if isinstance(received := next(iter(updates), None), MessageReceived):
        assert received.user.user_id.endswith("@people.example")


@pytest.mark.parametrize("row", table("bodies.csv"), ids=lambda row: row["name"])
def test_mails_whose_bodies_differ(row: dict[str, str]) -> None:
    mail = mails("bodies.toml")[row["name"]]
    raw = headed(rest="\n" + mail["mail"].lstrip("\n")).encode(mail.get("charset", "utf-8"))
    outcome, updates = outcome_of(raw)

    assert outcome == (row["outcome"], row["says"].replace("\\n", "\n"), "")
    files = [len(one.files) for one in updates if isinstance(one, MessageReceived)]
    assert files == [int(row["files"])] * len(files)


@pytest.mark.parametrize("row", table("dsn.csv"), ids=lambda row: row["program"])
def test_reports_of_delivery(row: dict[str, str]) -> None:
    report = (
        "From: MAILER-DAEMON@mx.people.example\nTo: news@shop.example\nMessage-ID: <2@people.example>\n"
        'Content-Type: multipart/report; report-type=delivery-status; boundary="b"\n\n'
        "--b\nContent-Type: text/plain\n\nSorry.\n--b\nContent-Type: message/delivery-status\n\n"
        "Reporting-MTA: dns; mx.people.example\n\nFinal-Recipient: rfc822; ann@people.example\n"
        f"Action: {row['action']}\nStatus: {row['status']}\nDiagnostic-Code: {row['diagnostic']}\n\n"
        f"--b\nContent-Type: text/rfc822-headers\n\nTo: <ann@people.example>\nMessage-ID: <{REF}>\n\n--b--\n"
    )
    address = "" if row["verdict"] == "nothing" else "ann@people.example"

    assert outcome_of(report.encode())[0] == ("report", address, row["verdict"])


@pytest.mark.parametrize("row", table("bounces.csv"), ids=lambda row: row["name"])
def test_bounces_for_people_and_complaints(row: dict[str, str]) -> None:
    mail = mails("bounces.toml")[row["name"]]["mail"]
    mail = mail.replace("{ref}", f"<{REF}>").replace("{htmlref}", escape(f"<{REF}>"))
    outcome, _ = outcome_of(headed(rest="\n" + mail).encode())

    assert outcome == (row["outcome"], row["says"], row["verdict"])


def test_each_mail_is_in_its_table() -> None:
    for name in ("bodies", "bounces"):
        assert list(mails(f"{name}.toml")) == [row["name"] for row in table(f"{name}.csv")]
