"""What is refused, in the language of whoever reads it."""

import re
from pathlib import Path

import pytest

from msgsvc_core.kernel.i18n import Texts
from msgsvc_dashboard.frame.refusals import OF_FIELDS, WHOLE, worded

ROOT = Path(__file__).parents[4]
OWN = ROOT / "plugins/areas/dashboard/msgsvc_dashboard/frame/refusals.py"

#: What pydantic says itself, after `explain`.
BY_PYDANTIC = re.compile(
    r"must be (greater|less) than|must (be a valid|have at (most|least))|characters$"
)


TEXTS = Texts(
    [
        ("msgsvc_core", ROOT / "msgsvc_core/locale"),
        ("msgsvc_dashboard", ROOT / "plugins/areas/dashboard/msgsvc_dashboard/locale"),
    ],
    "en",
)


@pytest.mark.parametrize(
    ("english", "russian"),
    [
        ("name: must have 1-64 characters", "Имя: от 1 до 64 символов"),
        ("fields[0].max: is required", "fields[0].max: нужно заполнить"),
        (
            "name: is required; text: must hold more than spaces and invisible characters",
            "Имя: нужно заполнить; Текст: не может состоять из одних пробелов и невидимых символов",
        ),
        (
            "password: is one of those that are guessed first; take another",
            "Пароль: из тех, что подбирают первыми; возьмите другой",
        ),
        ("key: you have a template 'hello' already", "Ключ: шаблон 'hello' уже есть"),
        ("a project has at most 20 templates", "В проекте не больше 20 шаблонов."),
        ("ticket 12 was merged into 7", "Обращение 12 объединено с 7."),
        (
            "this link was used, or has expired; ask for a new one",
            "Ссылка уже использована или устарела; попросите новую",
        ),
        (
            "url: the address ::1 is not public (the operator allows it by allow_cidrs in [webhooks])",
            "Адрес: адрес ::1 не публичный (его разрешает оператор, настройкой allow_cidrs в [webhooks])",
        ),
        ("name: {count} is required", "name: {count} is required"),
        ("the moon is full", "the moon is full"),
        ("Пароль неверен.", "Пароль неверен."),
    ],
)
def test_a_refusal_is_in_the_readers_language(english: str, russian: str) -> None:
    assert worded(english, TEXTS.into("ru")) == russian
    assert worded(english, TEXTS.into("en")) == english


def test_what_is_listed_is_what_services_say() -> None:
    """A text that is changed where it is raised would be in English again."""
    folders = [ROOT / "msgsvc_core", *ROOT.glob("plugins/areas/*/msgsvc_*")]
    code = "\n".join(
        path.read_text("utf-8")
        for folder in folders
        for path in folder.rglob("*.py")
        if path != OWN
    ).replace("\\'", "'")

    unsaid = [
        shape
        for shape in OF_FIELDS + WHOLE
        if not BY_PYDANTIC.search(shape)
        # What stands in brackets may be added elsewhere than where the rest is said.
        and not all(part in code for part in re.split(r"{\w+}| \(", shape))
    ]

    assert unsaid == []
