"""What the pages say can be done as it stands there."""

import re
import tomllib
from pathlib import Path

import pytest

from msgsvc_core.config.settings import Settings
from msgsvc_core.service import Service
from msgsvc_devkit.services import SECRET_KEY
from msgsvc_telegram import plugin
from msgsvc_telegram.failures import refusal
from msgsvc_telegram.settings import TelegramSettings

HERE = Path(__file__).parents[1]
README = HERE / "README.md"
GUIDE = HERE.parents[2] / "docs" / "guides" / "telegram.md"
TOKEN = "123456:" + "A" * 35


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("page", [README, GUIDE], ids=lambda page: page.name)
def test_the_settings_of_the_page_make_a_channel(page):
    (text,) = blocks(page, "toml")
    # Those that are commented out show defaults and examples.
    values = tomllib.loads(re.sub(r"^# (\w+ =)", r"\1", text, flags=re.MULTILINE))
    (name,) = values["channels"]
    values["channels"][name]["token"] = TOKEN

    service = Service(
        Settings.model_validate({"secret_keys": (SECRET_KEY,), **values, "plugins": ()}),
        extra_plugins=[("telegram", plugin)],
    )

    assert service.channels[name].receiving == "poll"


def test_the_readme_names_every_setting():
    (text,) = blocks(README, "toml")

    assert set(TelegramSettings.model_fields) <= set(
        re.findall(r"^#? ?(\w+) =", text, re.MULTILINE)
    )


def test_each_kind_of_failure_in_the_readme_has_the_reason_that_it_says():
    rows = re.findall(r"^\| (\d{3}.*) \| `(\w+)`", README.read_text(encoding="utf-8"), re.MULTILINE)
    checked = 0
    for told, reason in rows:
        for part in told.split("; "):
            status, _, sentences = part.partition(" ")
            for sentence in sentences.split(", "):
                if status.isdigit() and sentence and not sentence[0].isdigit():
                    assert refusal(int(status), sentence, {}, 1).reason == reason, sentence
                    checked += 1

    assert checked >= 8
