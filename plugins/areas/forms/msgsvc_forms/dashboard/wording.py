"""Texts of forms in the reader's language."""

from typing import Any

from msgsvc_core.dashboard import PageContext
from msgsvc_core.kernel.i18n import Localized, in_language
from msgsvc_forms.definition import Definition
from msgsvc_forms.summary import readable


class Wording:
    """For templates: `say(title)` is a text, `answer(definition, given)` an answer in readable form."""

    def __init__(self, page: PageContext, default_lang: str) -> None:
        self._page = page
        self._default_lang = default_lang

    def __call__(self, text: Localized | None) -> str:
        return "" if text is None else in_language(text, self._page.lang, self._default_lang)

    def label(self, definition: Definition, key: str) -> str:
        """What was asked; the key where that version of the form is not the one at hand."""
        field = definition.field(key)
        return key if field is None else self(field.label)

    def answer(self, definition: Definition, given: Any) -> str:
        """Labels of what was chosen, Yes and No, names of files."""
        field, value = definition.field(given["key"]), given["value"]
        if field is None:
            return str(value)
        lang = self._page.lang
        return readable(self._page._, field, value, lang=lang, default_lang=self._default_lang)
