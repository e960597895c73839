"""The questions of a conversation: a version of a form, in the user's language."""

from collections.abc import Sequence

from msgsvc_core.kernel.i18n import Localized, Translate, in_language
from msgsvc_forms.answers import Answers, Value
from msgsvc_forms.definition import Definition
from msgsvc_forms.fields import FormField
from msgsvc_forms.question_flow import next_field
from msgsvc_forms.summary import readable


class Script:
    """The questions in `lang`, and their order."""

    def __init__(self, definition: Definition, lang: str, default_lang: str = "en") -> None:
        self._definition = definition
        self._lang = lang
        self._default_lang = default_lang
        self._fields = {field.key: field for field in definition.fields}

    def __getitem__(self, key: str) -> FormField:
        return self._fields[key]

    def __contains__(self, key: str) -> bool:
        return key in self._fields

    @property
    def first(self) -> str:
        return self._definition.fields[0].key

    @property
    def is_single(self) -> bool:
        """Whether it asks one question alone."""
        return len(self._fields) == 1

    @property
    def title(self) -> str:
        return self.read(self._definition.title)

    @property
    def description(self) -> str:
        text = self._definition.description
        return "" if text is None else self.read(text)

    @property
    def thanks(self) -> str:
        text = self._definition.thanks
        return "" if text is None else self.read(text)

    def label(self, key: str) -> str:
        return self.read(self._fields[key].label)

    def options(self, key: str) -> Sequence[tuple[str, str]]:
        """Values and labels of what can be chosen."""
        field = self._fields[key]
        if field.type == "rating":
            return [(str(mark), str(mark)) for mark in range(1, field.best + 1)]
        return [(one.value, self.read(one.label)) for one in field.choices]

    def after(self, key: str, answers: Answers) -> str | None:
        """The question that follows with these answers; None after the last."""
        field = next_field(self._definition, answers, key)
        return None if field is None else field.key

    def read(self, text: Localized) -> str:
        return in_language(text, self._lang, self._default_lang)

    def readable(self, _: Translate, key: str, value: Value) -> str:
        """An answer as a person reads it."""
        return readable(
            _, self._fields[key], value, lang=self._lang, default_lang=self._default_lang
        )
