"""Renders outcomes as messages with buttons, in the user's language."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msgsvc_core.channels import Button, OutgoingMessage
from msgsvc_core.content.markup import clipped
from msgsvc_core.kernel.i18n import Translate
from msgsvc_core.kernel.visible_text import one_line
from msgsvc_forms.answers import Value
from msgsvc_forms.dialogue import layout
from msgsvc_forms.dialogue.engine import MOST_TRIES, takes_several
from msgsvc_forms.dialogue.outcomes import Remark
from msgsvc_forms.dialogue.remarks import say
from msgsvc_forms.dialogue.script import Script
from msgsvc_forms.dialogue.state import State, path_of, submitted

#: UTF-16 code units of a message: what every messenger takes, with room for what is not counted here.
MOST = 3900

#: Of these, what a list of options or answers may take; each line shares in it.
MOST_LISTED = 2400

#: Of a question, of a remark and of a title.
MOST_LABEL, MOST_REMARK, MOST_TITLE = 1000, 300, 100


@dataclass(frozen=True, slots=True)
class Wording:
    """The texts of one conversation: `data` makes the data of a button from an action and argument."""

    script: Script
    state: State
    translate: Translate
    data: Callable[[str, str], str]
    buttons_shown: bool = True

    def prompt(
        self, remarks: Sequence[Remark] = (), page: int = 0, offered: str | None = None
    ) -> OutgoingMessage:
        """What the state is at; `offered` is the title of another form that was opened."""
        said = [clipped(self.remark_text(remark), MOST_REMARK) for remark in remarks]
        text, actions, rows = self._asked(page, offered)
        if not self.buttons_shown:
            rows, text = (), "\n\n".join(filter(None, [text, self._commands(actions)]))
        row = tuple(Button(label, data=self.data(name, "")) for name, label in actions)
        buttons = (*rows, row) if row and self.buttons_shown else rows
        return OutgoingMessage(clipped("\n\n".join([*said, text]), MOST), buttons=buttons)

    def remark_text(self, remark: Remark) -> str:
        known = remark.key is not None and remark.key in self.script
        label = self.script.label(remark.key) if known and remark.key else self.script.title
        return say(self.translate, self.script, remark, clipped(one_line(label), MOST_TITLE))

    def introduction(self) -> str:
        """What stands before the first question."""
        title = clipped(one_line(self.script.title), MOST_REMARK)
        return clipped(f"{title}\n\n{self.script.description}".strip(), MOST)

    # ---- what is asked ---------------------------------------------------------------------------

    def _asked(self, page: int, offered: str | None) -> "_Asked":
        state = self.state
        if state.phase == "paused":
            return self._paused()
        if state.phase == "leaving":
            return self._leaving()
        if state.phase == "offered":
            return self._offered(offered)
        if state.at is None:
            return self._summary()
        if state.tries >= MOST_TRIES:
            return self._stuck(state.at)
        return self._question(state.at, page)

    def _question(self, key: str, page: int) -> "_Asked":
        _, field = self.translate, self.script[key]
        label = clipped(self.script.label(key), MOST_LABEL)
        lines = [label if field.required else f"{label} ({_('optional')})", self._hint(key)]
        if self._is_given(key):
            shown = clipped(self.readable_answer(key, self.state.answers[key].value), MOST_REMARK)
            lines.append(_("Current answer: {answer}", answer=shown))
        if field.type == "file" and self.state.draft:
            lines.append(
                _("Current files: {files}", files=self.readable_answer(key, list(self.state.draft)))
            )
        lines.append(self._listed(key))
        text = "\n\n".join(line for line in lines if line)
        return text, self._leading_on(key), self._rows(key, page)

    def _stuck(self, key: str) -> "_Asked":
        """Offers alternatives after too many refused answers."""
        _ = self.translate
        label = clipped(one_line(self.script.label(key)), MOST_REMARK)
        text = _("What would you like to do with “{label}”?", label=label)
        out = ("later", _("Later")) if self.script[key].required else ("skip", _("Skip"))
        return text, (("again", _("Try again")), out, ("cancel", _("Cancel"))), ()

    def _summary(self) -> "_Asked":
        _ = self.translate
        answers = submitted(self.script, self.state)
        each = MOST_LISTED // max(1, len(answers))
        lines = [
            clipped(
                f"{number}. {clipped(one_line(self.script.label(key)), each // 2)}: "
                f"{one_line(self.readable_answer(key, value))}",
                each,
            )
            for number, (key, value) in enumerate(answers.items(), 1)
        ]
        how = _("To change an answer, write its number.") if lines else ""
        head = _("Is everything right?")
        text = "\n\n".join(filter(None, [head, "\n".join(lines), how]))
        return text, (("send", _("Send")), ("back", _("‹ Back")), ("cancel", _("Cancel"))), ()

    def _paused(self) -> "_Asked":
        _ = self.translate
        title = clipped(one_line(self.script.title), MOST_TITLE)
        text = _("“{title}” is not finished; your answers are saved.", title=title)
        return text, (("go", _("Continue")), ("cancel", _("Cancel"))), ()

    def _leaving(self) -> "_Asked":
        _ = self.translate
        title = clipped(one_line(self.script.title), MOST_TITLE)
        text = _("Stop filling in “{title}”? Your answers will be deleted.", title=title)
        return text, (("cancel", _("Yes, delete")), ("go", _("Continue"))), ()

    def _offered(self, offered: str | None) -> "_Asked":
        _ = self.translate
        title = clipped(one_line(self.script.title), MOST_TITLE)
        text = _("You started “{title}” earlier. Continue where you left off?", title=title)
        anew = _("Start over")
        if offered is not None:
            other = clipped(one_line(offered), MOST_TITLE)
            anew = _("Start the other form")
            loses = _(
                "“{other}” will replace it, and your current answers will be deleted.", other=other
            )
            text = f"{text}\n\n{anew}: {loses}"
        if self.state.at is not None:
            text += "\n\n" + clipped(self.script.label(self.state.at), MOST_LABEL)
        return text, (("go", _("Continue")), ("anew", anew)), ()

    # ---- parts of a question ---------------------------------------------------------------------

    def _hint(self, key: str) -> str:
        _, field = self.translate, self.script[key]
        if takes_several(self.script, key) and self.buttons_shown:
            if field.type == "file":
                return _("Send up to {most} files, then press Done.", most=field.max_files)
            return _("Choose one or more, then press Done.")
        if field.type == "file":
            return _("Send a picture, a video or a document.")
        if field.type == "consent" and not self.buttons_shown:
            return _("Please answer Yes or No.")
        return _("For example: {example}", example="2026-12-31") if field.type == "date" else ""

    def _listed(self, key: str) -> str:
        """Options by number, where buttons can't show them."""
        options = self.script.options(key)
        if not options or (self.buttons_shown and layout.fit([label for _, label in options])):
            return ""
        if self.script[key].type == "rating":
            return self.translate("{least} to {most}", least=1, most=len(options))
        each = MOST_LISTED // len(options)
        return "\n".join(
            clipped(f"{number}. {one_line(label)}{' ✓' if self._is_chosen(value) else ''}", each)
            for number, (value, label) in enumerate(options, 1)
        )

    def _rows(self, key: str, page: int) -> tuple[tuple[Button, ...], ...]:
        _ = self.translate
        if self.script[key].type == "consent":
            agree = Button(_("I agree"), data=self.data("pick", "1"))
            refuse = Button(_("I don't agree"), data=self.data("pick", "0"))
            return ((agree, refuse),)
        options = self.script.options(key)
        page = layout.page_of(page, len(options))
        choosable = [
            (label, self._choosing(key, place, value, page), self._is_chosen(value))
            for place, (value, label) in enumerate(options)
        ]
        return layout.option_rows(choosable, page, self.data("page", str(page + 1)))

    def _choosing(self, key: str, place: int, value: str, page: int) -> str:
        if self.script[key].type != "multichoice":
            return self.data("pick", str(place))
        return self.data("drop" if self._is_chosen(value) else "put", f"{place}.{page}")

    def _is_chosen(self, value: str) -> bool:
        return value in self.state.draft

    def _is_given(self, key: str) -> bool:
        return key in self.state.answers and key not in self.state.skipped

    def _leading_on(self, key: str) -> "_Actions":
        _, state = self.translate, self.state
        actions = []
        if path_of(self.script, state).before(key) is not None:
            actions.append(("back", _("‹ Back")))
        if takes_several(self.script, key) and state.draft:
            actions.append(("done", _("Done")))
        elif self._is_given(key):
            actions.append(("keep", _("Keep")))
        elif not self.script[key].required:
            actions.append(("skip", _("Skip")))
        actions.append(("cancel", _("Cancel")))
        return tuple(actions)

    def _commands(self, actions: "_Actions") -> str:
        """The same for a messenger without buttons."""
        return "\n".join(f"/{name} – {label}" for name, label in actions)

    def readable_answer(self, key: str, value: Value) -> str:
        """An answer as a person reads it."""
        return self.script.readable(self.translate, key, value)


#: What leads on, by its action and label.
_Actions = tuple[tuple[str, str], ...]

_Asked = tuple[str, _Actions, tuple[tuple[Button, ...], ...]]
