"""The bot's side of forms: a link starts a conversation, and further messages go to it."""

from msgsvc_core.channels import (
    ButtonPressed,
    InboundContext,
    InboundRule,
    MessageEdited,
    MessageReceived,
    OutgoingMessage,
    Started,
)
from msgsvc_core.channels.commands import read_command
from msgsvc_core.channels.inbound import OWN_BUTTON
from msgsvc_core.files.service import Files
from msgsvc_core.jobs import NewJob
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.json import from_json
from msgsvc_core.projects.service import Projects
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_forms import dialogue_store as store
from msgsvc_forms.dialogue import (
    CommandSent,
    Edited,
    GivenFile,
    Notice,
    Outcome,
    Pressed,
    Remark,
    Said,
)
from msgsvc_forms.dialogue.remarks import plainly
from msgsvc_forms.dialogue_store import Dialogue
from msgsvc_forms.dialogues import Dialogues, described, state_of
from msgsvc_forms.models import START_PREFIX
from msgsvc_forms.prompts import BUTTON
from msgsvc_forms.service import Forms
from msgsvc_forms.settings import FormsSettings

#: The job that asks again, see `reminders`.
REMIND = "forms.remind"


class FormBot:
    """Handles links, messages, edits and button presses."""

    def __init__(
        self,
        *,
        clock: Clock,
        jobs: JobQueue,
        projects: Projects,
        subscribers: Subscribers,
        files: Files,
        forms: Forms,
        dialogues: Dialogues,
        settings: FormsSettings,
    ) -> None:
        self._clock = clock
        self._jobs = jobs
        self._projects = projects
        self._subscribers = subscribers
        self._files = files
        self._forms = forms
        self._dialogues = dialogues
        self._settings = settings

    def rules(self) -> list[InboundRule]:
        return [
            InboundRule("start", self._started, prefix=START_PREFIX),
            InboundRule("button", self._pressed, prefix=BUTTON),
            InboundRule("message", self._on_message, priority=20),
            InboundRule("edit", self._edited, priority=20),
            InboundRule("aside", self._aside),
        ]

    async def _started(self, ctx: InboundContext) -> bool:
        """What can't be filled in any more is left to the core's answer."""
        assert isinstance(ctx.update, Started)
        start = ctx.update.payload.removeprefix(START_PREFIX)
        form = await self._forms.find_started(ctx.tx, start)
        if form is None or not ctx.serves(form.project_id):
            return False
        project = await self._projects.get(ctx.tx, form.project_id)
        if project.status != "active":
            return False
        await ctx.enter_project(form.project_id)
        subscriber = await self._subscribers.ensure(
            ctx.tx,
            form.project_id,
            ctx.channel,
            ctx.update.user,
            ctx.update.chat_id,
            source="form",
        )
        await self._dialogues.open(ctx, form, subscriber)
        return True

    async def _on_message(self, ctx: InboundContext) -> bool:
        assert isinstance(ctx.update, MessageReceived)
        dialogue, subscriber = await self._active(ctx)
        if dialogue is None or subscriber is None:
            return False
        command = read_command(ctx.update.text)
        # A thread may be gone, and its form then asks in the chat itself.
        ends = command is not None and command.name == "cancel" and ctx.update.thread is None
        if dialogue.thread != ctx.update.thread and not ends:
            # What is written in another thread is about something else.
            return False
        is_paused = state_of(dialogue).phase == "paused"
        if command is not None:
            done = await self._dialogues.handle(ctx, dialogue, CommandSent(command.name))
            return bool(done)
        if is_paused:
            return False
        await self._dialogues.handle(ctx, dialogue, await self._message(ctx, dialogue, ctx.update))
        return True

    async def _message(
        self, ctx: InboundContext, dialogue: Dialogue, update: MessageReceived
    ) -> Said:
        state = state_of(dialogue)
        if not update.files or state.at is None:
            return Said(update.text, update.message_ref)
        stored = await self._files.receive(
            ctx, dialogue.project_id, dialogue.subscriber_id, update.files
        )
        files = tuple(GivenFile(**described(file)) for file in stored)
        problem = next((file.reason for file in stored if file.status == "failed"), None)
        return Said(update.text, update.message_ref, files, problem)

    async def _edited(self, ctx: InboundContext) -> bool:
        """A change of a message that was no answer is left to others."""
        assert isinstance(ctx.update, MessageEdited)
        ref = ctx.update.message_ref
        dialogue, _ = await self._active(ctx)
        if dialogue is not None and state_of(dialogue).knows(ref):
            await self._dialogues.handle(ctx, dialogue, Edited(ctx.update.text, ref))
            return True
        last = await store.find_last_submitted(ctx.tx, ctx.channel, ctx.update.chat_id)
        if last is None or ref not in from_json(last.state)["refs"]:
            return False
        await ctx.reply(OutgoingMessage(plainly(ctx._, Remark("edit_too_late"))))
        return True

    async def _pressed(self, ctx: InboundContext) -> None:
        assert isinstance(ctx.update, ButtonPressed)
        parts = ctx.update.data.removeprefix(OWN_BUTTON + BUTTON).split(":")
        which, turn, action, argument = (*parts, "", "", "", "")[:4]
        dialogue, _ = await self._active(ctx)
        if dialogue is None or dialogue.dialogue_id != which:
            await ctx.answer_button(plainly(ctx._, Remark("not_open")))
            return
        known = turn.isascii() and turn.isdecimal() and len(turn) < 9
        press = Pressed(int(turn) if known else 0, action, argument)
        outcomes = await self._dialogues.handle(ctx, dialogue, press)
        await ctx.answer_button(_notice(ctx, outcomes))

    async def _aside(self, ctx: InboundContext) -> None:
        """The person did something else: they are asked again when they have done with it."""
        if _is_ours(ctx):
            return
        dialogue, _ = await self._active(ctx)
        if dialogue is None or state_of(dialogue).phase == "paused":
            return
        if dialogue.thread != ctx.update.thread:
            # The question is still the last message of its own thread.
            return
        now_ms = self._clock.now_ms()
        await store.record_interruption(ctx.tx, dialogue, now_ms)
        job = NewJob(
            REMIND,
            {"project_id": dialogue.project_id, "dialogue_id": dialogue.dialogue_id},
            run_at_ms=now_ms + self._settings.ask_again_after_s * 1000,
            key=dialogue.dialogue_id,
            project_id=dialogue.project_id,
        )
        await self._jobs.enqueue(ctx.tx, job)

    async def _active(self, ctx: InboundContext) -> tuple[Dialogue | None, Subscriber | None]:
        """The conversation of whoever wrote, if there is one in this chat and they still subscribe."""
        dialogue = await store.lock_active(ctx.tx, ctx.channel, ctx.update.chat_id)
        if dialogue is None:
            return None, None
        subscriber = await self._dialogues.active_filler(ctx, dialogue)
        if subscriber is None or subscriber.user_id != ctx.update.user.user_id:
            return None, None
        return dialogue, subscriber


def _is_ours(ctx: InboundContext) -> bool:
    match ctx.update:
        case Started(payload=payload):
            return payload.startswith(START_PREFIX)
        case ButtonPressed(data=data):
            return data.startswith(OWN_BUTTON + BUTTON)
    return False


def _notice(ctx: InboundContext, outcomes: list[Outcome]) -> str | None:
    notices = [one.remark for one in outcomes if isinstance(one, Notice)]
    return plainly(ctx._, notices[0]) if notices else None
