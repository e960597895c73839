"""The content of a mailing: stored when it is accepted, rendered for each recipient."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from msgsvc_core.content.links import urls_of
from msgsvc_core.content.outgoing import Media, OutgoingMessage
from msgsvc_core.content.substitution import SAMPLE_ADDRESS, sample_values, to_text
from msgsvc_core.kernel.i18n import Localized, in_language
from msgsvc_core.kernel.json import to_json
from msgsvc_core.messages.templates.models import TemplateContent
from msgsvc_core.messages.templates.rendering import Rendering, read_content
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_core.subscribers.preferences_links import VARIABLE, PreferencesLinks

#: Variables that every recipient has.
ALWAYS = ("first_name", "lang", "tags", VARIABLE)

#: Variables that a recipient may lack: they need a default.
SOMETIMES = ("username",)
ATTRIBUTE = "attributes."

#: Number of cached parsed contents. They are looked up by their text, so none can be stale.
KEPT = 64


@dataclass
class MailingContent:
    """Parsed contents. `variables` are the same for all recipients. `tracks_links`: whether clicks on its
    links are counted."""

    rendering: Rendering
    variables: Mapping[str, str]
    silent: bool
    tracks_links: bool = False
    #: Shared messages with places for the addresses of their links, and the ids of these, by address of the
    #: service, mailing, and `id` of the message: see `LinkTracking`.
    tracked: dict[tuple[str, str, int], tuple[OutgoingMessage, list[str]]] = field(
        default_factory=dict
    )
    _shared: dict[str, OutgoingMessage] = field(default_factory=dict)

    @property
    def personal(self) -> list[str]:
        """The variables that differ per recipient."""
        return [name for name in self.rendering.variables if name not in self.variables]

    @property
    def unknown(self) -> list[str]:
        """Variables without a default that some recipients may have no value for."""
        return [
            name
            for name in self.rendering.required
            if name not in self.variables and name not in ALWAYS
        ]

    @property
    def shared_media(self) -> Media | None:
        """The file that all recipients get; None if there is none, or its URL differs per recipient."""
        media = self.rendering.content.media
        if media is None or self._is_personal(("media", "url"), ("media", "filename")):
            return None
        sample = sample_values(self.personal)
        return self.render("en", "en", sample, most=2**31).media

    @cached_property
    def urls(self) -> tuple[str, ...]:
        """The URLs in text and buttons that are the same for all readers of a language; not those with a
        recipient's own values."""
        mark = "zq"
        while mark in repr(self.rendering.content) or any(
            mark in each for each in self.variables.values()
        ):
            mark += "q"
        values = {name: SAMPLE_ADDRESS if name == VARIABLE else mark for name in self.personal}
        texts = self.rendering.texts.values()
        langs = {lang for by_lang in texts for lang in by_lang if lang is not None}
        found = [
            url
            for lang in sorted(langs) or ["en"]
            for url in urls_of(self.render(lang, lang, values, most=2**31))
            if mark not in url and url != SAMPLE_ADDRESS
        ]
        return tuple(dict.fromkeys(found))

    def message_for(
        self, subscriber: Subscriber, default_lang: str, most: int, links: PreferencesLinks
    ) -> OutgoingMessage:
        """The message for a recipient; `most` is the maximum length of the text, `links` make
        `preferences_url`.

        Raises `WrongVariable` and `ValidationFailed` for invalid values.
        """
        if self.personal:
            values = self.values_of(subscriber, links)
            return self.render(subscriber.lang, default_lang, values, most)
        shared = self._shared.get(subscriber.lang)
        if shared is None:
            shared = self.render(subscriber.lang, default_lang, {}, most)
            self._shared[subscriber.lang] = shared
        return shared

    def is_shared(self, message: OutgoingMessage) -> bool:
        """Whether `message_for` returns this very object for all recipients of a language."""
        return any(each is message for each in self._shared.values())

    @property
    def unfilled(self) -> OutgoingMessage:
        """The content stored for a message that a recipient's values made invalid: the unrendered text."""
        content = self.rendering.content
        text = in_language(content.text, "en", "en")
        return OutgoingMessage(text=text, format=content.format, silent=self.silent)

    def render(
        self, lang: str, default_lang: str, personal: Mapping[str, str], most: int
    ) -> OutgoingMessage:
        """The message with these values and the common ones, which take precedence.

        Raises what `message_for` does.
        """
        values = {**personal, **self.variables}
        return self.rendering.render(lang, default_lang, values, most).to_message(
            silent=self.silent
        )

    def values_of(self, subscriber: Subscriber, links: PreferencesLinks) -> dict[str, str]:
        """The recipient's own values of the variables in use."""
        own: dict[str, Any] = {
            "first_name": subscriber.first_name or None,
            "username": subscriber.username,
            "lang": subscriber.lang,
            "tags": ", ".join(subscriber.tags) or None,
        }
        values: dict[str, str] = {}
        for name in self.personal:
            if name == VARIABLE:
                values[name] = links.url(subscriber.project_id, subscriber.subscriber_id)
                continue
            if name.startswith(ATTRIBUTE):
                value = (subscriber.attributes or {}).get(name.removeprefix(ATTRIBUTE))
            else:
                value = own.get(name)
            if isinstance(value, str | int | float):
                values[name] = to_text(value)
            elif name in self.rendering.required and name in ALWAYS:
                # Without tags the variable has no value.
                values[name] = ""
        return values

    def _is_personal(self, *places: tuple[str, ...]) -> bool:
        return any(
            hole.name not in self.variables
            for place in places
            for template in self.rendering.texts.get(place, {}).values()
            for hole in template.holes
        )


def with_preferences_link(content: TemplateContent) -> TemplateContent:
    """The contents with the recipient's `preferences_url` on a line of its own, unless they have it."""
    link = f"{{{{ {VARIABLE} }}}}"
    if VARIABLE in read_content(content).variables:
        return content
    if isinstance(content.text, str):
        text: Localized = f"{content.text}\n\n{link}"
    else:
        text = {lang: f"{each}\n\n{link}" for lang, each in content.text.items()}
    return content.model_copy(update={"text": text})


def to_column(
    content: TemplateContent,
    variables: Mapping[str, Any],
    *,
    silent: bool,
    tracks_links: bool = False,
) -> str:
    """The contents in the form of the column."""
    column = {
        "content": content.model_dump(exclude_defaults=True),
        "variables": {name: to_text(value) for name, value in variables.items()},
        "silent": silent,
    }
    return to_json({**column, "tracks_links": True} if tracks_links else column)


def without_values(column: str) -> str:
    """The contents in the form of the column, with empty variables."""
    kept = json.loads(column)
    return to_json({**kept, "variables": dict.fromkeys(kept["variables"], "")})


@lru_cache(maxsize=KEPT)
def read_column(column: str) -> MailingContent:
    """Parses stored contents. Raises `ValidationFailed` for an invalid template."""
    kept = json.loads(column)
    content = TemplateContent.model_validate(kept["content"])
    return MailingContent(
        read_content(content),
        kept["variables"],
        kept["silent"],
        tracks_links=kept.get("tracks_links", False),
    )
