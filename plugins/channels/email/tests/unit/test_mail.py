"""Mails as strangers and their programs write them: what is read of them, and in which time."""

import base64

import pytest

from msgsvc_core.security.secret_box import SecretBox
from msgsvc_devkit.growth import growing
from msgsvc_email.bounces import read_report
from msgsvc_email.mail import Head, UnreadableMail, content_of_file, read_mail
from msgsvc_email.mail_text import text_of_html, written_in
from msgsvc_email.proof import is_verified
from msgsvc_email.structured import bare, recipients, sender_in
from msgsvc_email.tokens import Tokens
from msgsvc_email.updates import files_of


def mail(body: bytes, content_type: str = "text/plain; charset=utf-8", fields: str = "") -> bytes:
    head = f"From: ann@people.example\nContent-Type: {content_type}\n{fields}\n"
    return head.encode() + body


def alternatives(*parts: bytes, kind: str = "alternative") -> bytes:
    body = b"".join(b"--b\r\n" + part + b"\r\n" for part in parts) + b"--b--\r\n"
    return mail(body, f'multipart/{kind}; boundary="b"')


def test_a_plain_mail() -> None:
    read = read_mail(mail(b"Hello\r\nAnn\r\n", fields="Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\n"))

    assert read.text == "Hello\nAnn"
    assert read.head.decoded("subject") == "Grüße"
    assert (read.files, read.blocks, read.returned) == ((), (), None)


@pytest.mark.parametrize(
    ("charset", "sent", "text"),
    [
        ("x-unknown", "Grüße".encode(), "Grüße"),
        ("x-unknown", "Grüße".encode("cp1252"), "Grüße"),
        ("default", b"Hello", "Hello"),
        ("iso-8859-8-i", "שלום".encode("iso-8859-8"), "שלום"),
        ("cp-850", "é".encode("cp850"), "é"),
        ("utf-8mb4", "Grüße".encode(), "Grüße"),
        ("us-ascii", "Grüße".encode(), "Grüße"),
        ("utf-8", "Grüße".encode("cp1252"), "Grüße"),
        ("koi8-r", "Привет".encode("koi8-r"), "Привет"),
        ("punycode", b"Hello", "Hello"),
        ("base64", b"Hello", "Hello"),
        ("\u0131so", b"Hello", "Hello"),
        ("", b"Hello", "Hello"),
    ],
)
def test_a_text_is_read_whatever_its_charset_is_called(
    charset: str, sent: bytes, text: str
) -> None:
    assert read_mail(mail(sent, f'text/plain; charset="{charset}"')).text == text


def test_of_alternatives_the_first_that_says_something_is_read() -> None:
    html = b"Content-Type: text/html\r\n\r\n<p>In HTML</p>"
    plain = b"Content-Type: text/plain\r\n\r\nIn words"
    empty = b"Content-Type: text/plain\r\n\r\n \r\n"

    assert read_mail(alternatives(plain, html)).text == "In words"
    assert read_mail(alternatives(empty, html)).text == "In HTML"


def test_text_below_a_picture_belongs_to_the_text() -> None:
    picture = b"Content-Type: image/png\r\nContent-Transfer-Encoding: base64\r\n\r\nAAAA"
    raw = alternatives(b"\r\nAbove", picture, b"\r\nBelow", kind="mixed")
    read = read_mail(raw)

    assert read.text == "Above\n\nBelow"
    [file] = files_of(read, "1:2")
    assert (file.type, file.file_ref, file.mime_type, file.size) == (
        "image",
        "1:2:0",
        "image/png",
        3,
    )
    assert content_of_file(raw, 0) == b"\0\0\0"
    assert content_of_file(raw, 1) is None


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ('filename="=?utf-8?b?0YTQvtGC0L4=?="', "фото"),
        ("filename*=utf-8''%D1%84%D0%BE%D1%82%D0%BE", "фото"),
        ("filename*0*=utf-8''%D1%84%D0%BE; filename*1*=%D1%82; filename*2=o", "фотo"),
        ('filename="a \\"b\\".png"', 'a "b".png'),
        ("filename*=x-none''%FF", "ÿ"),
        ('filename="a', ""),
    ],
)
def test_names_of_files_in_the_forms_that_programs_write(written: str, name: str) -> None:
    part = f"Content-Disposition: attachment; {written}\r\n\r\nx".encode()
    [file] = read_mail(alternatives(part, kind="mixed")).files or [None]

    assert ((file.name or "") if file else "") == name


def test_a_mail_that_was_cut_off_is_read_as_far_as_it_goes() -> None:
    picture = base64.b64encode(b"picture")[:-3]
    head = b"Content-Disposition: attachment\r\nContent-Transfer-Encoding: base64\r\n\r\n"
    raw = alternatives(b"\r\nAbove", head + picture, kind="mixed")[:-8]

    assert read_mail(raw).text == "Above"
    assert content_of_file(raw, 0) == b"pictur"


def test_parts_within_parts_are_read_to_a_depth_and_a_number() -> None:
    nested = b"\r\nDeep"
    for level in range(50):
        kind = f'Content-Type: multipart/mixed; boundary="b{level}"\r\n\r\n'.encode()
        nested = kind + f"--b{level}\r\n".encode() + nested + f"\r\n--b{level}--".encode()
    many = alternatives(*[b"Content-Disposition: attachment\r\n\r\nx"] * 500, kind="mixed")

    assert "multipart/mixed" in read_mail(b"From: ann@people.example\r\n" + nested).text
    assert len(read_mail(many).files) == 99


@pytest.mark.parametrize(
    "raw", [b"", b"\n\nHello", b"no field\n\nHello", b"A: " + b"a" * 300_000, b"A: b\n" * 1001]
)
def test_what_is_no_mail_is_unreadable(raw: bytes) -> None:
    with pytest.raises(UnreadableMail):
        read_mail(raw)


@pytest.mark.parametrize(
    ("html", "text"),
    [
        (
            "<p>Above</p><div class=gmail_quote><div>News</div></div><p>Below</p>",
            "Above\n\n>\nBelow\n",
        ),
        ('<div class="gmail_quote">News</div>Below', "\n>\nBelow"),
        ("<blockquote><blockquote>a</blockquote>b</blockquote>c", "\n>\nc"),
        ("1 < 2 && 3 > 2", "1 < 2 && 3 > 2"),
        ("<!-- a > b -->c<!doctype html>d", "cd"),
        ("<script>if (a < b) {}</script >a<STYLE>b</Style>c", "ac"),
        ("<head><title>a", "a"),
        ("a&nbsp;b&lt;&#x41;&#99999999999;", "a b<A\ufffd"),
        ("a<br/>b</li>c", "a\nb\nc"),
        ("a<b", "a"),
    ],
)
def test_the_text_of_html(html: str, text: str) -> None:
    assert text_of_html(html) == text


@pytest.mark.parametrize(
    ("field", "sender"),
    [
        ("ann@people.example", ("", "ann@people.example")),
        ("Ann Lee <ann@people.example>", ("Ann Lee", "ann@people.example")),
        ('"Lee, Ann" <ann@people.example>', ("Lee, Ann", "ann@people.example")),
        ("Lee, Ann <ann@people.example>", ("Lee, Ann", "ann@people.example")),
        ("ann@people.example <ann@people.example>", ("ann@people.example", "ann@people.example")),
        ('"bob@people.example" <ann@people.example>', ("bob@people.example", "ann@people.example")),
        ("=?utf-8?q?J=C3=B6rg?= <j@people.example>", ("Jörg", "j@people.example")),
        ("(a (b) c) ann@people.example", ("", "ann@people.example")),
        ("bob@people.example <ann@people.example>", None),
        ("<bob@people.example> <ann@people.example>", None),
        ("bob@people.example, ann@people.example", None),
        ("bob@people.example,ann@people.example", None),
        ("bob@people.example, <ann@people.example>", None),
        ("bob@people.example ann@people.example", None),
        ("a: bob@people.example;", None),
        ("<@people.example:ann@people.example>", None),
        ("(bob@people.example", None),
        ('"bob <ann@people.example>', None),
        ("Ann", None),
        ("", None),
    ],
)
def test_a_sender_is_exactly_one_address(field: str, sender: tuple[str, str] | None) -> None:
    assert sender_in(field) == sender


HOSTILE = [b"\n", b"\r\n", b"ok\n", b">\n", b"> a\nb\n", b"<", b"<div ", b"<head ", b"<script>"]
HOSTILE += [b"<!--", b"<!-- -->", b"</div>", b"<div class=gmail_quote>", b"&#1", b"&lt", b"-- \n"]
HOSTILE += [b"--b\n", b"--b", b"On a wrote:\n", b"___________________________\n", b"\0", b"\xff"]
HOSTILE += [b"=", b"=\n", b"on " + b"a" * 90 + b" wrote", b"> ", b"a@b.example ", b" ", b"\t\n"]


@pytest.mark.parametrize("content_type", ["text/plain", "text/html", "multipart/mixed;boundary=b"])
@pytest.mark.parametrize("encoding", ["8bit", "quoted-printable", "base64"])
def test_bodies_are_read_in_time_linear_in_their_size(content_type: str, encoding: str) -> None:
    before = mail(b"", content_type, f"Content-Transfer-Encoding: {encoding}\n")

    assert growing(read_mail, HOSTILE, before=before) == []


FIELDS = [b"(", b"()", b'"', b'\\"', b";a=", b';a="', b";a*0*=%ff", b"=?a?q?", b"=?utf-8?q?=41?= "]
FIELDS += [
    b"<",
    b"<a@b.example>, ",
    b"a",
    b"\n ",
    b";",
    b"\n a",
    b",",
    b"=",
    b"dmarc=pass ",
    b"x.y=",
]
FIELDS += [b"a@", b"@", b"a.", b"''", b"\xcc\x81"]


@pytest.mark.parametrize(
    "name",
    [
        "From",
        "Subject",
        "Authentication-Results",
        "Content-Type",
        "Content-Disposition",
        "References",
        "To",
        "Message-ID",
        "Auto-Submitted",
        "X",
    ],
)
def test_fields_are_read_in_time_linear_in_their_size(name: str) -> None:
    def read(raw: bytes) -> None:
        head = read_mail(raw).head
        head.decoded("subject")
        sender_in(head.get("from"))
        bare(head.get("auto-submitted"))
        recipients(head)
        is_verified(head, "ann@people.example", "mx.shop.example")

    before = f"{name}: mx.shop.example; a/b ".encode()
    assert growing(read, FIELDS, before=before, after=b"\n\nHello") == []


def test_reports_are_read_in_time_linear_in_their_size() -> None:
    tokens = Tokens(SecretBox(["a" * 32]), "mail", "shop.example")
    before = (
        b"From: a@b.example\nContent-Type: multipart/report; report-type=delivery-status; boundary=b\n\n"
        b"--b\nContent-Type: message/delivery-status\n\n"
    )
    units = [
        b"Action: failed\nStatus: 5.1.1\nFinal-Recipient: rfc822; a@b.example\n\n",
        b"\n",
        b"a:b\n",
    ]

    def read(raw: bytes) -> None:
        mail = read_mail(raw)
        read_report(mail, "1", tokens=tokens, mailbox="news@shop.example")

    assert growing(read, units, before=before) == []


def test_plain_texts_are_read_in_time_linear_in_their_size() -> None:
    assert growing(written_in, ["ok\n", "\n", ">", "> a\n", "on  wrote:\n", "a" * 399 + "\n"]) == []


@pytest.mark.parametrize(
    "subject", ["Fwd: News", "WG: News", "TR : News", "=?utf-8?q?FW=3A_News?="]
)
def test_what_is_forwarded_stays(subject: str) -> None:
    text = (
        b"See below\r\n\r\nFrom: Shop\r\nSent: Friday\r\nTo: Ann\r\nSubject: News\r\n\r\nWhich one?"
    )
    html = b"See below<blockquote>Which one?</blockquote>"

    assert "Which one?" in read_mail(mail(text, fields=f"Subject: {subject}\n")).text
    assert "Which one?" in read_mail(mail(html, "text/html", f"Subject: {subject}\n")).text
    assert read_mail(mail(text, fields="Subject: Re: News\n")).text == "See below"


def test_a_head_finds_fields_by_name() -> None:
    head = Head((("to", "a"), ("to", "b")))

    assert (head.get("to"), head.all("to"), head.get("cc"), "cc" in head) == (
        "a",
        ["a", "b"],
        "",
        False,
    )
