"""Conversations in messengers: stored in the database, and run by the state machine of `dialogue`."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import structlog

from msgsvc_core.channels import InboundContext, OutgoingMessage
from msgsvc_core.channels.system_messages.outbox import BotOutbox
from msgsvc_core.db import Tx
from msgsvc_core.files import StoredFile
from msgsvc_core.files.service import Files
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.kernel.i18n import Translate
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.kernel.json import to_json
from msgsvc_core.projects.service import Projects
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_forms import dialogue_store as store
from msgsvc_forms.answers import Answers, Value
from msgsvc_forms.dialogue import (
    Ended,
    Event,
    FileLost,
    Notice,
    Opened,
    Outcome,
    Prompt,
    Redraw,
    Remark,
    Restart,
    Say,
    State,
    Submit,
    initial_state,
    step,
)
from msgsvc_forms.dialogue.wording import Wording
from msgsvc_forms.dialogue_store import Dialogue, DialogueStatus
from msgsvc_forms.models import Form, NewSubmission
from msgsvc_forms.prompts import Prompts
from msgsvc_forms.service import Forms
from msgsvc_forms.submissions import Submissions

#: How many times the budget of automatic answers a dialogue has: people correct what they wrote, and a
#: program that answers each question comes to an end.
REPEATED = 10

log = structlog.get_logger(__name__)


class Dialogues:
    """Starts conversations and handles users' actions in them."""

    def __init__(
        self,
        *,
        clock: Clock,
        projects: Projects,
        subscribers: Subscribers,
        files: Files,
        outbox: BotOutbox,
        forms: Forms,
        submissions: Submissions,
        prompts: Prompts,
    ) -> None:
        self._clock = clock
        self._projects = projects
        self._subscribers = subscribers
        self._files = files
        self._outbox = outbox
        self._forms = forms
        self._submissions = submissions
        self._prompts = prompts

    async def open(self, ctx: InboundContext, form: Form, subscriber: Subscriber) -> None:
        """A link to `form` was opened: starts it, unless answers would be lost."""
        under_way = await store.lock_active(ctx.tx, ctx.channel, ctx.update.chat_id)
        if under_way is not None:
            state, running = state_of(under_way), await self._form(ctx.tx, under_way)
            begun = bool(state.answers or state.skipped or state.draft)
            if running is not None and begun and await self.active_filler(ctx, under_way):
                under_way = await self._here(ctx, under_way)
                await self._advance(ctx, under_way, running, Opened(form.start))
                return
            await self.finish(ctx.tx, under_way, "replaced")
        await self._start(ctx, form, subscriber)

    async def active_filler(self, ctx: InboundContext, dialogue: Dialogue) -> Subscriber | None:
        """The subscriber; None if they cannot continue, e.g. because they unsubscribed."""
        if not ctx.serves(dialogue.project_id):
            return None
        project = await self._projects.get(ctx.tx, dialogue.project_id)
        subscriber = await self._subscribers.get(
            ctx.tx, dialogue.project_id, dialogue.subscriber_id
        )
        is_active = project.status == "active" and subscriber.status == "active"
        return subscriber if is_active else None

    async def handle(self, ctx: InboundContext, dialogue: Dialogue, event: Event) -> list[Outcome]:
        """Something that the person did; the bot does what follows from it, and it is returned.

        If it asks something, the conversation goes on in the thread where it does.
        """
        form = await self._form(ctx.tx, dialogue)
        if form is None:
            await self.finish(ctx.tx, dialogue, "gone")
            await ctx.reply(gone(ctx._))
            return [Ended()]
        outcomes = await self._advance(ctx, dialogue, form, event)
        if any(isinstance(outcome, Prompt) for outcome in outcomes):
            await self._here(ctx, dialogue)
        return outcomes

    async def current_prompt(
        self, tx: Tx, dialogue: Dialogue, remark: Remark
    ) -> OutgoingMessage | None:
        """The current question or summary, outside of an update; None if the form was deleted."""
        form = await self._form(tx, dialogue)
        if form is None:
            return None
        subscriber = await self._subscribers.get(tx, dialogue.project_id, dialogue.subscriber_id)
        state, lang = state_of(dialogue), subscriber.lang
        wording = self._prompts.wording(dialogue, state, form, lang)
        offered = await self._prompts.offered(tx, state, form, lang)
        return wording.prompt((remark,), offered=offered).in_thread(dialogue.thread)

    async def finish(self, tx: Tx, dialogue: Dialogue, status: DialogueStatus) -> None:
        """Ends a conversation. Of its answers is left by which messages they came, if they were sent,
        so that a change of one is answered."""
        state = state_of(dialogue)
        refs = [given.ref for given in state.answers.values() if given.ref]
        left = to_json({"refs": refs if status == "submitted" else []})
        now_ms = self._clock.now_ms()
        ended = await store.change(tx, dialogue, left, status=status, now_ms=now_ms)
        assert ended, "the row is held"
        if status != "submitted":
            await self._files.remove(tx, dialogue.project_id, files_in(state))

    async def file_fetched(self, tx: Tx, file: StoredFile) -> None:
        """A file is here, or will not come: then its answer is asked for again."""
        if file.is_ready or file.subscriber_id is None:
            return
        dialogue = await store.lock_with_file(tx, file.project_id, file.subscriber_id, file.file_id)
        form = None if dialogue is None else await self._form(tx, dialogue)
        if dialogue is None or form is None:
            return
        subscriber = await self._subscribers.get(tx, dialogue.project_id, dialogue.subscriber_id)
        lang = subscriber.lang
        lost = FileLost(file.file_id, file.reason)
        state, outcomes = step(self._prompts.script(form, lang), state_of(dialogue), lost)
        changed = await self._with_state(tx, dialogue, state)
        wording = self._prompts.wording(changed, state, form, lang)
        for outcome in outcomes:
            if isinstance(outcome, Prompt):
                message = wording.prompt(outcome.remarks)
                await self._outbox.send(
                    tx, dialogue.channel, dialogue.chat_id, message.in_thread(dialogue.thread)
                )

    async def _here(self, ctx: InboundContext, dialogue: Dialogue) -> Dialogue:
        if dialogue.thread == ctx.update.thread:
            return dialogue
        await store.move(ctx.tx, dialogue, ctx.update.thread)
        return replace(dialogue, thread=ctx.update.thread)

    # ---- one step --------------------------------------------------------------------------------

    async def _start(self, ctx: InboundContext, form: Form, subscriber: Subscriber) -> None:
        now_ms = self._clock.now_ms()
        script = self._prompts.script(form, ctx.lang)
        state = initial_state(script)
        dialogue = Dialogue(
            project_id=form.project_id,
            dialogue_id=new_id("fdl"),
            channel=ctx.channel,
            chat_id=ctx.update.chat_id,
            subscriber_id=subscriber.subscriber_id,
            form_id=form.form_id,
            version=form.version,
            status="active",
            state=to_json(state.to_json()),
            revision=1,
            aside_at_ms=None,
            created_at_ms=now_ms,
            updated_at_ms=now_ms,
            thread=ctx.update.thread,
        )
        if not await store.insert(ctx.tx, dialogue):
            # Opened twice concurrently: the other one asks.
            return
        wording = self._prompts.wording(dialogue, state, form, ctx.lang)
        await ctx.reply(OutgoingMessage(wording.introduction()))
        await ctx.reply(wording.prompt(), asks=True)

    async def _advance(
        self, ctx: InboundContext, dialogue: Dialogue, form: Form, event: Event
    ) -> list[Outcome]:
        script, before = self._prompts.script(form, ctx.lang), state_of(dialogue)
        state, outcomes = step(script, before, event)
        if state != before:
            await self._update_files(ctx.tx, dialogue, before, state)
            dialogue = await self._with_state(ctx.tx, dialogue, state)
        for outcome in outcomes:
            await self._perform(ctx, dialogue, form, outcome)
        return outcomes

    async def _perform(
        self, ctx: InboundContext, dialogue: Dialogue, form: Form, outcome: Outcome
    ) -> None:
        state = state_of(dialogue)
        wording = self._prompts.wording(dialogue, state, form, ctx.lang)
        match outcome:
            case Prompt(remarks):
                offered = await self._prompts.offered(ctx.tx, state, form, ctx.lang)
                prompt = wording.prompt(remarks, offered=offered)
                if remarks:
                    await ctx.reply_by_itself("form", prompt, asks=True, share=REPEATED)
                else:
                    await ctx.reply(prompt, asks=True)
            case Redraw(page):
                message_ref: str = getattr(ctx.update, "message_ref", "")
                await ctx.edit(message_ref, wording.prompt(page=page))
            case Say(remark):
                said = OutgoingMessage(wording.remark_text(remark))
                await ctx.reply_by_itself("form", said, share=REPEATED)
            case Submit(answers):
                await self._submit(ctx, dialogue, form, wording, answers)
            case Ended():
                await self.finish(ctx.tx, dialogue, "cancelled")
                await ctx.reply(OutgoingMessage(wording.remark_text(Remark("ended"))))
            case Restart(start):
                await self._restart(ctx, dialogue, start)
            case Notice():
                # A button press is answered by the button rule.
                pass

    async def _restart(self, ctx: InboundContext, dialogue: Dialogue, start: str) -> None:
        form = await self._forms.find_started(ctx.tx, start)
        if form is None or not ctx.serves(form.project_id):
            await ctx.reply(gone(ctx._))
            return
        await self.finish(ctx.tx, dialogue, "replaced")
        subscriber = await self._subscribers.ensure(
            ctx.tx,
            form.project_id,
            ctx.channel,
            ctx.update.user,
            ctx.update.chat_id,
            source="form",
        )
        await self._start(ctx, form, subscriber)

    async def _submit(
        self,
        ctx: InboundContext,
        dialogue: Dialogue,
        form: Form,
        wording: Wording,
        answers: Answers,
    ) -> None:
        subscriber = await self._subscribers.get(
            ctx.tx, dialogue.project_id, dialogue.subscriber_id
        )
        new = NewSubmission(
            form=form,
            source="messenger",
            answers=await self._with_files(ctx.tx, form, answers),
            lang=ctx.lang,
            subscriber=subscriber,
            once_key=hashlib.sha256(dialogue.dialogue_id.encode()).hexdigest(),
        )
        try:
            async with ctx.tx.savepoint():
                await self._submissions.submit(ctx.tx, new)
                await self.finish(ctx.tx, dialogue, "submitted")
                await self._drop_unsent(ctx.tx, dialogue, answers)
        except ApiError as error:
            log.warning("form_not_submitted", form_id=form.form_id, code=error.code)
            await ctx.reply(wording.prompt((Remark("not_now"),)), asks=True)
            return
        thanks = wording.script.thanks or wording.remark_text(Remark("submitted"))
        await ctx.reply(OutgoingMessage(thanks))

    async def _drop_unsent(self, tx: Tx, dialogue: Dialogue, answers: Answers) -> None:
        """Removes files of answers that were skipped later, or that the way led past."""
        sent = files_of_values(answers.values())
        unsent = [file for file in files_in(state_of(dialogue)) if file not in sent]
        await self._files.remove(tx, dialogue.project_id, unsent)

    # ---- what both need ---------------------------------------------------------------------------

    async def _form(self, tx: Tx, dialogue: Dialogue) -> Form | None:
        """The version that was started, even if the form has changed; None if it was deleted."""
        return await self._forms.find_version(
            tx, dialogue.project_id, dialogue.form_id, dialogue.version
        )

    async def _with_state(self, tx: Tx, dialogue: Dialogue, state: State) -> Dialogue:
        kept, now_ms = to_json(state.to_json()), self._clock.now_ms()
        changed = await store.change(tx, dialogue, kept, now_ms=now_ms)
        assert changed, "the row is held"
        return replace(dialogue, state=kept, revision=dialogue.revision + 1, updated_at_ms=now_ms)

    async def _with_files(self, tx: Tx, form: Form, answers: Answers) -> dict[str, Any]:
        """Answers with the current state of their files, which were still being downloaded when given."""
        told = dict(answers)
        for field in form.definition.fields:
            if field.type == "file" and field.key in told:
                ids = [file["file_id"] for file in told[field.key]]
                known = await self._files.get_many(tx, form.project_id, ids)
                told[field.key] = [described(file) for file in known] or told[field.key]
        return told

    async def _update_files(self, tx: Tx, dialogue: Dialogue, before: State, after: State) -> None:
        """Files that are in the answers stay, and those that were replaced go."""
        were, are = files_in(before), files_in(after)
        await self._files.retain(
            tx, dialogue.project_id, [file_id for file_id in are if file_id not in were]
        )
        gone = [file_id for file_id in were if file_id not in are]
        await self._files.remove(tx, dialogue.project_id, gone)


def files_of_values(values: Iterable[Value]) -> list[str]:
    """The ids of files among answers."""
    return [
        one["file_id"]
        for value in values
        if isinstance(value, list)
        for one in value
        if isinstance(one, dict)
    ]


def described(file: StoredFile) -> dict[str, Any]:
    """A stored file in the form of an answer."""
    return {
        "file_id": file.file_id,
        "filename": file.filename,
        "mime_type": file.mime_type,
        "size": file.size,
        "type": file.type,
    }


def files_in(state: State) -> Sequence[str]:
    """The ids of all files in a conversation."""
    return files_of_values([*(given.value for given in state.answers.values()), [*state.draft]])


def state_of(dialogue: Dialogue) -> State:
    return State.from_json(json.loads(dialogue.state))


def gone(_: Translate) -> OutgoingMessage:
    """The reply if the form was deleted."""
    return OutgoingMessage(_("This form no longer exists. Thank you for your time."))
