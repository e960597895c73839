"""What a person wrote above, below and between what they quote, in time linear in the text.

Mail programs introduce what they quote in three ways: by a line such as "On 27 Nov 2026 Ann wrote:", by a
rule such as "-----Original Message-----", or by the fields of the mail. What follows is marked by `>`, or is
all the rest.
"""

import re
from collections.abc import Sequence

#: Characters of a line that may introduce a quotation, and lines that programs break it into.
MAX_INTRODUCTION, MAX_LINES = 400, 3

#: Lines in which the fields of a quoted mail are looked for. Long ones take several.
MAX_FIELD_LINES = 10

#: "Wrote", in the languages of mail programs.
_WROTE = re.compile(
    r"\b(?:wrote|writes|schrieb|a écrit|escribió|ha scritto|escreveu|schreef|geschreven|pisze"
    r"|na(?:psal|písal|pisał)(?:a|\(a\))?|skrev|kirjoitti|(?:ezt )?írta|yazdı|a scris|έγραψε|va escriure"
    r"|je napisa[ol](?:/la)?|(?:на)?писал(?:а|и|\(а\))?|пишет|пише|написав|написа|rašė|rakstīja"
    r"|kirjutas|menulis|đã viết)(?!\w)|写道|寫道|님이 작성|כתב|كتب|เขียนว่า",
    re.IGNORECASE,
)

#: Where an introduction ends; in Yahoo's program for Android the quotation goes on in its line.
_COLON = re.compile(r"[:：]\s*$")
_COLON_INSIDE = re.compile(r"(?<=\w)[:：](?=[ \xa0]{2,}\S)")

_DATE = re.compile(r"\d{4}[-/.年년]|\b(?:19|20)\d\d\b|\b\d{1,2}[./-]\s?\d{1,2}[./-]")
_TIME = re.compile(r"\b\d{1,2}[:.h]\d{2}\b")
_ADDRESS = re.compile(r"[^\s<>@]@[^\s<>@]+\.[^\s<>@]")
_ENDS_IN_ADDRESS = re.compile(r"<[^\s<>@]+@[^\s<>@]+>\s*[:：]\s*$")

#: How the first line of an introduction in several lines begins.
_BEGINS = re.compile(
    r"\s*(?:on|am|le|el|il|em|a|op|den|dne|dnia|w dniu|dana|la|vào|pada|в|на)\b.{0,120}\d",
    re.IGNORECASE,
)

_RULE = re.compile(
    r"\s*-{2,}\s*(?:original (?:message|appointment)|reply message|ursprüngliche nachricht"
    r"|original-?nachricht"
    r"|message d['’]origine|message original|mensaje original|messaggio originale|mensagem original"
    r"|oorspronkelijk bericht|oryginalna wiadomość|wiadomość oryginalna|исходное сообщение"
    r"|оригинальное сообщение|оригінальне повідомлення|původní (?:zpráva|e-mail)|pôvodná správa"
    r"|ursprungligt meddelande|oprindelig meddelelse|opprinnelig melding|alkuperäinen viesti|eredeti üzenet"
    r"|özgün ileti|orijinal (?:mesaj|ileti)|mesaj original|αρχικό μήνυμα|izvorna poruka"
    r"|原始邮件|原始郵件|元のメッセージ|원본 (?:메시지|메일))\s*-{2,}\s*",
    re.IGNORECASE,
)
_LINE = re.compile(r"\s*_{20,}\s*")

#: What is forwarded is not quoted: it is what the mail is about.
_FORWARDED = re.compile(
    r"\s*-{2,}\s*(?:forwarded message|weitergeleitete nachricht|message transféré|mensaje reenviado"
    r"|messaggio inoltrato|mensagem encaminhada|doorgestuurd bericht|przekazana wiadomość"
    r"|пересылаемое сообщение|пересланное сообщение)\s*-{2,}\s*"
    r"|\s*(?:begin forwarded message|anfang der weitergeleiteten nachricht|début du message réexpédié"
    r"|inizio messaggio inoltrato|inicio del mensaje reenviado|начало переадресованного сообщения)\s*:\s*",
    re.IGNORECASE,
)

_FIELDS = {
    "from": "from von de da od van från fra lähettäjä feladó kimden gönderen от від από 发件人"
    " 寄件者 差出人 보낸사람",
    "sent": "sent date gesendet datum envoyé enviado enviada inviato data fecha wysłano verzonden skickat"
    " sendt lähetetty elküldve gönderildi tarih отправлено дата надіслано odesláno odoslané trimis στάλθηκε"
    " 发送时间 日期 送信日時 보낸날짜",
    "to": "to an à para a do aan till til vastaanottaja címzett kime alıcı кому komu către προς 收件人 宛先"
    " 받는사람",
    "cc": "cc copia cópia kopie kopia kopi копия копія",
    "subject": "subject betreff objet asunto oggetto assunto temat onderwerp ämne emne aihe tárgy konu тема"
    " předmět predmet subiect θέμα 主题 主旨 件名 제목",
}
_ROLES = {word: role for role, words in _FIELDS.items() for word in words.split()}
_FIELD = re.compile(r"[\s*]{0,20}([^\W\d_]+(?: (?:el|em|кого|사람|날짜))?)[\s*]{0,5}[:：]")

#: Marks of a change of direction, which programs put around what they write, and blanks of other widths.
_INVISIBLE = dict.fromkeys(
    map(ord, "\u200b\u200e\u200f\u202a\u202b\u202c\u2066\u2067\u2068\u2069\ufeff")
)


def without_quotations(lines: Sequence[str]) -> list[str]:
    """The lines that a person wrote. Answers below and between quotations stay; where nothing would be left
    above one that is not marked line by line, it stays as well."""
    kept: list[str] = []
    wrote = False
    number = 0
    while number < len(lines):
        line = lines[number]
        if line.startswith(">"):
            number += 1
            continue
        # Most lines are far from a colon and have no rule, which is found out fast.
        near = lines[number : number + MAX_LINES]
        if any(":" in one or "：" in one or "--" in one for one in near):
            if _FORWARDED.fullmatch(line[:MAX_INTRODUCTION]):
                return [*kept, *lines[number:]]
            taken = _introduction(lines, number)
            if taken and _is_marked(lines, number + taken):
                number += taken
                continue
            if wrote and (
                _is_certain(lines[number : number + taken]) or _begins_rest(lines, number)
            ):
                break
        kept.append(line)
        wrote = wrote or bool(line.strip())
        number += 1
    return kept


def _introduction(lines: Sequence[str], number: int) -> int:
    """How many lines introduce a quotation from here; 0 if none does."""
    joined = ""
    for count in range(1, MAX_LINES + 1):
        if number + count > len(lines):
            break
        line = lines[number + count - 1].translate(_INVISIBLE)
        if len(line) > MAX_INTRODUCTION or not line.strip() or line.startswith(">"):
            break
        if count > 1 and not (_BEGINS.match(joined) or _DATE.search(joined)):
            break
        joined = f"{joined} {line.strip()}" if joined else line
        if len(joined) > MAX_INTRODUCTION:
            break
        if _is_introduction(joined):
            return count
    return 0


def _is_introduction(text: str) -> bool:
    if _COLON.search(text[-20:]):
        return bool(_WROTE.search(text)) or _is_dated_address(text)
    return bool(_COLON_INSIDE.search(text) and _WROTE.search(text) and _DATE.search(text))


def _is_dated_address(text: str) -> bool:
    """`27.11.2026, 10:00, "Shop" <news@shop.example>:`, as Yandex and others write."""
    return bool(_ENDS_IN_ADDRESS.search(text) and (_DATE.search(text) or _TIME.search(text)))


def _is_certain(lines: Sequence[str]) -> bool:
    """Whether a program wrote the introduction: people give no address when they cite."""
    text = " ".join(lines).translate(_INVISIBLE)
    return bool(_DATE.search(text) and _ADDRESS.search(text))


def _is_marked(lines: Sequence[str], number: int) -> bool:
    """Whether the next line with text is marked as quoted."""
    for line in lines[number : number + MAX_LINES]:
        if line.strip():
            return line.startswith(">")
    return False


def _begins_rest(lines: Sequence[str], number: int) -> bool:
    """Whether the rest is a mail that is quoted: behind a rule, or with its fields."""
    line = lines[number]
    if not line.strip() or len(line) > MAX_INTRODUCTION:
        return False
    return bool(_RULE.fullmatch(line)) or _has_fields(lines, number + bool(_LINE.fullmatch(line)))


def _has_fields(lines: Sequence[str], number: int) -> bool:
    found: set[str] = set()
    for line in lines[number : number + MAX_FIELD_LINES]:
        named = _FIELD.match(line[:60].translate(_INVISIBLE))
        words = named[1].lower() if named else ""
        role = _ROLES.get(words.replace(" ", "")) or _ROLES.get(words.partition(" ")[0])
        if role is not None:
            found.add(role)
        elif not found and line.strip():
            return False
    return {"from", "subject"} <= found and bool(found & {"sent", "to"})
