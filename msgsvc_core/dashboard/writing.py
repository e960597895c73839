"""Forms for messages and audiences, and their conversion to bodies of the API. Pages of several areas have
the same fields (`composer.html` and `sending.html` of the frame)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from starlette.datastructures import QueryParams

from msgsvc_core.channels.registry import Channels
from msgsvc_core.content.substitution import to_text
from msgsvc_core.dashboard.context import PageContext
from msgsvc_core.dashboard.one_line import from_line, to_line
from msgsvc_core.dashboard.posted import PostedForm
from msgsvc_core.kernel.i18n import TAG, Localized, in_language
from msgsvc_core.messages.templates.service import Templates
from msgsvc_core.routing import Routes
from msgsvc_core.subscribers.permissions.service import Permissions
from msgsvc_core.subscribers.tags.service import Tags

_HOUR_S = 3600
_BUTTON = re.compile(rf"button_text_(?:{TAG}_)?(\d{{1,3}})", re.ASCII)
_TAGS = ("tags_any", "tags_all", "tags_none")

#: Maximum number of tags shown as checkboxes; others can be typed.
_MOST_TAGS = 100


def query_form(page: PageContext) -> PostedForm:
    """The values of a GET form, in which a name may occur several times."""
    values: dict[str, list[str]] = {}
    if isinstance(page.query, QueryParams):
        for name, text in page.query.multi_items():
            values.setdefault(name, []).append(text)
    return PostedForm(values)


class MessageChoices:
    """What a message of a project may use, for the template's `offers`."""

    def __init__(
        self,
        *,
        tags: Tags,
        templates: Templates,
        permissions: Permissions,
        channels: Channels,
        routes: Routes,
        max_templates: int,
        default_lang: str,
    ) -> None:
        self._tags = tags
        self._templates = templates
        self._permissions = permissions
        self._channels = channels
        self._routes = routes
        self._max_templates = max_templates
        self._default_lang = default_lang

    async def of(self, page: PageContext) -> dict[str, Any]:
        project_id = page.project_id
        # Without their numbers of subscribers: a tag may have a million.
        tags = await self._tags.list_all(page.tx, project_id, 0)
        newest = sorted(tags, key=lambda tag: (tag.created_at_ms, tag.name), reverse=True)
        templates = await self._templates.page(page.tx, project_id, None, self._max_templates)
        permissions = await self._permissions.list_all(page.tx, project_id)
        return {
            "tags": sorted(tag.name for tag in newest[:_MOST_TAGS]),
            "templates": sorted((template.key, template.key) for template in templates),
            "permissions": [
                (each.key, in_language(each.title, page.lang, self._default_lang))
                for each in permissions
            ],
            "routes": [
                (route.route_id, route.name)
                for route in await self._routes.list_all(page.tx, project_id)
            ],
            "channels": [channel.name for channel in self._channels.list_for_project(project_id)],
        }


class MessageForm:
    """A message in a form, as `composer.html` of the frame draws its fields; unvalidated.

    Of several messages in a form each has a `prefix` of its fields. `options` are the same for all of them.
    """

    #: What the form asks for. A change by the form leaves all other fields of a message as they are.
    FIELDS = (
        "text",
        "format",
        "media",
        "buttons",
        "template",
        "variables",
        "permission",
        "silent",
        "expires_in",
    )

    def __init__(self, form: PostedForm, prefix: str = "") -> None:
        self._whole = form
        self._form = form.starting_with(prefix) if prefix else form

    @property
    def is_written(self) -> bool:
        """Whether there is something to show: a template, or a text in any language."""
        if self._is_template:
            return bool(self._form.text("template"))
        return bool(_localized(self._form, "text"))

    def content(self) -> dict[str, Any]:
        """`text`, `format`, `media` and `buttons` as in the bodies of the API; a text is one for all, or one
        per language."""
        form = self._form
        content: dict[str, Any] = {
            "text": _localized(form, "text"),
            "format": form.text("format", "plain"),
        }
        if url := form.text("media_url").strip():
            content["media"] = {"type": form.text("media_type", "image"), "url": url}
            if filename := form.text("media_filename").strip():
                content["media"]["filename"] = filename
        content["buttons"] = _buttons(form)
        return content

    def source(self) -> dict[str, Any]:
        """The content or the template, and the variables."""
        source: dict[str, Any] = (
            {"template": self._form.text("template")} if self._is_template else self.content()
        )
        if variables := _variables(self._form.text("variables")):
            source["variables"] = variables
        return source

    def options(self) -> dict[str, Any]:
        """How it is sent: `permission`, `silent`, `expires_in`."""
        form = self._whole
        options: dict[str, Any] = {}
        if permission := form.text("permission"):
            options["permission"] = permission
        if form.checked("silent"):
            options["silent"] = True
        if hours := form.text("expires_hours").strip():
            options["expires_in"] = _seconds(hours)
        return options

    def message(self) -> dict[str, Any]:
        """All of it."""
        return {**self.source(), **self.options()}

    @property
    def _is_template(self) -> bool:
        return self._form.text("written") == "template"

    @staticmethod
    def values_of(message: Mapping[str, Any]) -> dict[str, Sequence[str]]:
        """The values of the fields for a message, or for its content alone, without a prefix: for editing, or
        for a copy."""
        values: dict[str, Sequence[str]] = {
            "written": ["template" if message.get("template") else "text"],
            "template": [message.get("template") or ""],
            **_text_values(message.get("text") or "", "text"),
            "format": [message.get("format") or "plain"],
        }
        media = message.get("media") or {}
        for name in ("type", "url", "filename"):
            values[f"media_{name}"] = [media.get(name) or ""]
        values |= _button_values(message.get("buttons") or [])
        variables = message.get("variables") or {}
        values["variables"] = [
            "\n".join(f"{name} = {to_line(to_text(value))}" for name, value in variables.items())
        ]
        values["permission"] = [message.get("permission") or ""]
        if message.get("silent"):
            values["silent"] = ["1"]
        seconds = message.get("expires_in")
        values["expires_hours"] = [f"{seconds / _HOUR_S:g}" if seconds else ""]
        return {name: texts for name, texts in values.items() if texts != [""]}


def audience_of(form: PostedForm) -> dict[str, Any]:
    """The audience of the form, unvalidated."""
    if form.text("to", "all") != "some":
        return {"all": True}
    audience: dict[str, Any] = {}
    for name in _TAGS:
        written = [tag.strip() for tag in form.text(f"{name}_more").split(",")]
        if tags := list(dict.fromkeys([*form.texts(name), *(tag for tag in written if tag)])):
            audience[name] = tags
    if permission := form.text("audience_permission"):
        audience["permission"] = permission
    for name in ("channels", "langs"):
        if chosen := form.texts(name):
            audience[name] = chosen
    return audience


def audience_values(audience: Mapping[str, Any]) -> dict[str, Sequence[str]]:
    """The values of the fields for an audience: for a copy."""
    values: dict[str, Sequence[str]] = {"to": ["all" if audience.get("all") else "some"]}
    for name in (*_TAGS, "channels", "langs"):
        values[name] = list(audience.get(name) or [])
    values["audience_permission"] = [audience.get("permission") or ""]
    return {name: texts for name, texts in values.items() if texts != [""]}


def _localized(form: PostedForm, name: str, number: str = "") -> Localized:
    """The text of a field: one for all languages or, if there are fields such as `text_ru`, one per
    language, of which it is the English one."""
    text = form.text(f"{name}{number}")
    others = {
        match[1]: written
        for field in form.values
        if (match := re.fullmatch(rf"{name}_({TAG}){number}", field))
        and (written := form.text(field)).strip()
    }
    if not others:
        return text
    return {"en": text, **others} if text.strip() else others


def _text_values(text: Localized, name: str, number: str = "") -> dict[str, Sequence[str]]:
    """The fields of a text."""
    by_lang = {"en": text} if isinstance(text, str) else text
    return {
        f"{name}{number}" if lang == "en" else f"{name}_{lang}{number}": [each]
        for lang, each in by_lang.items()
    }


def _seconds(hours: str) -> object:
    """Seconds for hours; anything but a number is passed on for validation to reject."""
    try:
        return round(float(hours.replace(",", ".")) * _HOUR_S)
    except (ValueError, OverflowError):
        return hours


def _variables(text: str) -> dict[str, str]:
    """One per line, as `name = value`; special characters are escaped as in `one_line`."""
    lines = (line.partition("=") for line in text.split("\n") if line.strip())
    return {name.strip(): from_line(value) for name, _, value in lines}


def _buttons(form: PostedForm) -> list[list[dict[str, Any]]]:
    """Rows of buttons; those without a label are omitted."""
    rows: list[list[dict[str, Any]]] = []
    for number in _numbers(form):
        button: dict[str, Any] = {"text": _localized(form, "button_text", f"_{number}")}
        for name in ("url", "data", "style"):
            if value := form.text(f"button_{name}_{number}").strip():
                button[name] = value
        if rows and form.checked(f"button_beside_{number}"):
            rows[-1].append(button)
        else:
            rows.append([button])
    return rows


def _numbers(form: PostedForm) -> Iterator[int]:
    found = (_BUTTON.fullmatch(name) for name in form.values)
    for number in sorted({int(match[1]) for match in found if match}):
        texts = _localized(form, "button_text", f"_{number}")
        is_written = bool(texts.strip() if isinstance(texts, str) else texts)
        if is_written or any(
            form.text(f"button_{name}_{number}").strip() for name in ("url", "data")
        ):
            yield number


def _button_values(rows: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, Sequence[str]]:
    values: dict[str, Sequence[str]] = {}
    placed = [(button, place > 0) for row in rows for place, button in enumerate(row)]
    for number, (button, is_beside) in enumerate(placed, start=1):
        values |= _text_values(button["text"], "button_text", f"_{number}")
        values[f"button_url_{number}"] = [button.get("url") or ""]
        values[f"button_data_{number}"] = [button.get("data") or ""]
        values[f"button_style_{number}"] = [button.get("style") or ""]
        if is_beside:
            values[f"button_beside_{number}"] = ["1"]
    return values
