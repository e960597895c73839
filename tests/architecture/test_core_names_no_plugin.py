"""The core knows no plugin: what it must know of one, the plugin declares.

Imports are import-linter's; here are names in strings. Comments and docstrings decide nothing, and may give
an example.
"""

import re
import tomllib
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from msgsvc_core.config.defaults import (
    CHANNELS_GROUP,
    PLUGINS_GROUP,
    default_channels,
    default_plugins,
)
from msgsvc_core.config.settings import load_settings
from msgsvc_core.plugins.loading import ENTRY_POINT_GROUP
from tests.architecture.tree import CORE, ROOT, assert_none, files_in, source_of, strings_of


def declared(group: str) -> dict[str, str]:
    """The entry points of the plugins in this tree, as their files say."""
    found: dict[str, str] = {}
    for path in sorted(ROOT.glob("plugins/*/*/pyproject.toml")):
        project: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))["project"]
        found |= project["entry-points"].get(group, {})
    return found


#: Left out: the core's accounts and contacts have an `email` too, and examples name channels `sms`.
PLUGINS = sorted(declared(ENTRY_POINT_GROUP).keys() - {"email", "sms"})

#: Plugins whose names are words of English, too: in a sentence they mean a plugin only in quotes, backticks
#: or brackets.
WORDS = {"billing", "broadcasts", "dashboard", "forms", "max", "scheduling", "webhooks"}

_SOURCES = "values of `source` in the API: how a person came, and not which plugin brought them"

#: What means something else: by file and text, with the reason.
EXCEPTIONS = {
    ("api/examples.py", "telegram"): "the channel of the examples in the API description",
    ("config/sections.py", "[own_channels.settings.telegram]"): "an example in the reference",
    ("files/streaming.py", "default-src 'none'; sandbox"): "a directive of Content-Security-Policy",
    (
        "projects/branding/pages.py",
        "default-src 'none'; sandbox; frame-ancestors 'none'",
    ): "a directive of Content-Security-Policy",
    ("api/markdown.py", "webhooks"): "a part of every OpenAPI 3.1 document",
    ("http/openapi/document.py", "webhooks"): "a part of every OpenAPI 3.1 document",
    ("http/openapi/sharing.py", "webhooks"): "a part of every OpenAPI 3.1 document",
    ("subscribers/greetings.py", "auth"): _SOURCES,
    ("subscribers/models.py", "auth"): _SOURCES,
    ("subscribers/models.py", "otp"): _SOURCES,
    ("subscribers/models.py", "helpdesk"): _SOURCES,
    ("telemetry/event_metrics.py", "auth.completed, otp.verified"): "events, by their names",
}

# Packages of the core are called `dashboard` and `billing`; `max-age` is a word of its own.
_NAME = re.compile(rf"(?<![\w-])(?<!msgsvc_core\.)(?:{'|'.join(PLUGINS)})(?![\w-])")
_QUOTED = re.compile(rf"[\"'`\[](?:{'|'.join(PLUGINS)})[\"'`\]]")


def names_a_plugin(text: str) -> bool:
    found = set(_NAME.findall(text))
    if " " in text.strip():
        return bool(found - WORDS or _QUOTED.search(text))
    return bool(found)


@cache
def naming() -> tuple[tuple[str, str], ...]:
    """The modules of the core that name a plugin, each with the text that does."""
    return tuple(
        (str(path.relative_to(CORE)), text)
        for path in files_in(CORE, ".py")
        # An escaped line break would be a letter before the name.
        if _NAME.search(source_of(path).replace("\\n", " "))
        for text in strings_of(path)
        if names_a_plugin(text)
    )


def test_no_text_of_the_core_means_a_plugin() -> None:
    left = [
        (module, text)
        for module, text in naming()
        if not any(module == where and part in text for where, part in EXCEPTIONS)
    ]

    assert_none(left)


def test_every_exception_is_needed() -> None:
    unneeded = [
        (where, part)
        for where, part in EXCEPTIONS
        if not any(module == where and part in text for module, text in naming())
    ]

    assert_none(unneeded)


def test_the_search_finds_names() -> None:
    meant = {
        "auth": True,
        "webhooks": True,
        "name some, e.g. sandbox": True,
        'plugins = ["webhooks"]': True,
        "signing secrets of webhooks": False,
        "max-age=86400": False,
        "msgsvc_core.dashboard": False,
        "authority": False,
    }

    assert {text: names_a_plugin(text) for text in meant} == meant


def test_what_is_there_by_default_is_what_plugins_declare() -> None:
    settings = load_settings(env={}, secret_keys=["-" * 32])
    by_place = declared(PLUGINS_GROUP)

    assert settings.plugins == default_plugins()
    assert list(default_plugins()) == [name.partition("-")[2] for name in sorted(by_place)]
    assert {name: each.plugin for name, each in settings.channels.items()} == default_channels()
    assert default_channels() == declared(CHANNELS_GROUP)


def test_the_order_of_the_defaults_stays() -> None:
    # The order of hooks, and with it that of the OpenAPI document.
    assert default_plugins() == (
        "sandbox",
        "auth",
        "oidc",
        "otp",
        "gateway",
        "broadcasts",
        "scheduling",
        "drip",
        "forms",
        "helpdesk",
        "webhooks",
        "billing",
        "dashboard",
    )


def test_a_default_names_the_module_of_its_plugin() -> None:
    modules = {point.name: point.value for point in entry_points(group=ENTRY_POINT_GROUP)}
    defaults = {name.partition("-")[2]: value for name, value in declared(PLUGINS_GROUP).items()}

    assert {name: modules[name] for name in defaults} == defaults
