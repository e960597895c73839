"""What is refused, in the language of whoever reads it."""

from pathlib import Path

import pytest

from msgsvc_core.kernel.errors import Finding, Refusal
from msgsvc_core.kernel.i18n import Texts
from msgsvc_dashboard.frame.refusals import worded

ROOT = Path(__file__).parents[4]

TEXTS = Texts(
    [
        ("msgsvc_core", ROOT / "msgsvc_core/locale"),
        *(
            (f"msgsvc_{area}", ROOT / f"plugins/areas/{area}/msgsvc_{area}/locale")
            for area in ("dashboard", "helpdesk", "webhooks")
        ),
    ],
    "en",
)


def core(msgid: str, *path: str, **params: object) -> Finding:
    return Finding(msgid, params, path, "msgsvc_core")


@pytest.mark.parametrize(
    ("findings", "english", "russian"),
    [
        (
            [core("must have at most {limit} characters", "name", limit=64)],
            "name: must have at most 64 characters",
            "Название: не больше 64 символов",
        ),
        (
            [core("is required", "fields[0].max")],
            "fields[0].max: is required",
            "fields[0].max: нужно заполнить",
        ),
        (
            [
                core("is required", "name"),
                core("must hold more than spaces and invisible characters", "text"),
            ],
            "name: is required; text: must hold more than spaces and invisible characters",
            "Название: нужно заполнить; Текст: не может состоять из одних пробелов и невидимых символов",
        ),
        (
            [core("you have a template {key!r} already", "key", key="hello")],
            "key: you have a template 'hello' already",
            "Ключ: шаблон 'hello' уже есть",
        ),
        (
            [core("a project has at most {limit} templates", limit=20)],
            "a project has at most 20 templates",
            "В проекте не больше 20 шаблонов.",
        ),
        (
            [
                Finding(
                    "ticket {number} was merged into {other}",
                    {"number": 12, "other": 7},
                    package="msgsvc_helpdesk",
                )
            ],
            "ticket 12 was merged into 7",
            "Обращение 12 объединено с 7.",
        ),
        (
            [
                Finding(
                    "{reason} (the operator allows it by {setting} in [webhooks])",
                    {
                        "reason": Refusal(
                            [core("the address {address} is not public", address="::1")]
                        ),
                        "setting": "allow_cidrs",
                    },
                    ("url",),
                    "msgsvc_webhooks",
                )
            ],
            "url: the address ::1 is not public (the operator allows it by allow_cidrs in [webhooks])",
            "Адрес: адрес ::1 не публичный (администратор сервиса разрешает его: allow_cidrs в [webhooks])",
        ),
        ([Finding("the moon is full")], "the moon is full", "the moon is full"),
        ([Finding("{count} moons")], "{count} moons", "{count} moons"),
    ],
)
def test_a_refusal_is_in_the_readers_language(
    findings: list[Finding], english: str, russian: str
) -> None:
    refusal = Refusal(findings)

    assert worded(refusal, TEXTS.into("ru")) == russian
    assert worded(refusal, TEXTS.into("en")) == english == str(refusal)


def test_what_a_page_has_worded_itself_is_shown_as_it_is() -> None:
    assert worded("Пароль неверен.", TEXTS.into("ru")) == "Пароль неверен."
