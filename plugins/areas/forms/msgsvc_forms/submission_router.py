"""Routes submissions by the rules of their forms: to a subscriber, a tag's subscribers, or a ticket."""

from collections.abc import Iterable

from msgsvc_core.channels import Channel
from msgsvc_core.channels.registry import Channels
from msgsvc_core.config.settings import Settings
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import ApiError, NotFound, ValidationFailed
from msgsvc_core.kernel.i18n import Localized, Texts, in_language
from msgsvc_core.mailings import Audience, MailingMessage, NewMailing
from msgsvc_core.mailings.service import Mailings
from msgsvc_core.messages import SendBody
from msgsvc_core.messages.service import Messages
from msgsvc_core.plugins.tickets import TicketDesk, TicketRequest
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_core.subscribers.tags.service import Tags
from msgsvc_forms.definition import Definition, Rule, ToNextField, ToSubscriber, ToTag, ToTicket
from msgsvc_forms.models import Form, NewSubmission, RuleResult, Submission
from msgsvc_forms.question_flow import condition_holds
from msgsvc_forms.summary import customer_of, files_of, summarized

#: What marks the mailings and tickets that forms began.
SOURCE = "forms"

#: Why a rule to a ticket leads nowhere.
NO_HELPDESK = "no plugin that keeps tickets is loaded, e.g. helpdesk"


class SubmissionRouter:
    """Runs the rules of submissions."""

    def __init__(
        self,
        *,
        settings: Settings,
        texts: Texts,
        channels: Channels,
        subscribers: Subscribers,
        tags: Tags,
        messages: Messages,
        mailings: Mailings,
        tickets: TicketDesk,
    ) -> None:
        self._settings = settings
        self._texts = texts
        self._channels = channels
        self._subscribers = subscribers
        self._tags = tags
        self._messages = messages
        self._mailings = mailings
        self._tickets = tickets

    async def check(self, tx: Tx, project_id: str, definition: Definition) -> None:
        """Validates a form's rules when it is saved.

        Raises `ValidationFailed`, and `NotFound` for an unknown subscriber, naming the rule.
        """
        for number, rule in enumerate(definition.rules):
            where = f"rules[{number}].to"
            try:
                await self._check(tx, project_id, rule)
            except ValidationFailed as error:
                raise error.at(where, joined=True) from None
            except ApiError as error:
                raise error.at(where) from None

    async def route(self, tx: Tx, new: NewSubmission, submission: Submission) -> list[RuleResult]:
        """What became of each rule whose condition holds.

        One that leads nowhere any more, e.g. as its subscriber has left, takes nothing from the others.
        """
        definition = new.form.definition
        results = []
        for number, rule in enumerate(definition.rules):
            if isinstance(rule.to, ToNextField) or not condition_holds(
                definition, rule.when, new.answers
            ):
                continue
            kind = rule.to.kind
            try:
                async with tx.savepoint():
                    made = await self._deliver(tx, new.form, submission, rule)
            except ApiError as error:
                results.append(
                    RuleResult(number, kind, "failed", code=error.code, error=error.message)
                )
            else:
                results.append(RuleResult(number, kind, "completed", id=made))
        return results

    async def _check(self, tx: Tx, project_id: str, rule: Rule) -> None:
        match rule.to:
            case ToSubscriber():
                await self._subscribers.get_recipient(
                    project_id,
                    subscriber_id=rule.to.subscriber_id,
                    external_id=rule.to.external_id,
                    channel=rule.to.channel,
                    tx=tx,
                )
            case ToTag():
                if not await self._has_tag(tx, project_id, rule.to.tag):
                    raise ValidationFailed(
                        "this project has no tag {tag!r}", field="tag", tag=rule.to.tag
                    )
            case ToTicket():
                if not self._tickets.is_open:
                    raise ValidationFailed(NO_HELPDESK, field="kind")

    async def _has_tag(self, tx: Tx, project_id: str, tag: str) -> bool:
        try:
            await self._tags.get(tx, project_id, tag)
        except NotFound:
            return False
        return True

    async def _deliver(self, tx: Tx, form: Form, submission: Submission, rule: Rule) -> str | None:
        """The id of what was made there."""
        match rule.to:
            case ToSubscriber():
                return await self._to_subscriber(tx, form, submission, rule.to)
            case ToTag():
                return await self._to_tag(tx, form, submission, rule.to)
            case ToTicket():
                return await self._to_ticket(tx, form, submission, rule.to)
            case ToNextField():
                raise AssertionError("leads nowhere outside the messenger")
            case _ as event_alone:
                assert event_alone.kind == "webhook"
                return None

    async def _to_subscriber(
        self, tx: Tx, form: Form, submission: Submission, to: ToSubscriber
    ) -> str:
        whom = {"subscriber_id": to.subscriber_id, "external_id": to.external_id}
        recipient = await self._subscribers.get_recipient(
            form.project_id, **whom, channel=to.channel, tx=tx
        )
        bot = self._channels.resolve(form.project_id, recipient.channel)
        limit = self._max_text_length(() if bot is None else (bot,))
        text = self._text(form, submission, recipient.lang, to.text, limit)
        body = SendBody(subscriber_id=recipient.subscriber_id, text=text, format="plain")
        message = await self._messages.queue(tx, form.project_id, body)
        return message.message_id

    async def _to_tag(self, tx: Tx, form: Form, submission: Submission, to: ToTag) -> str:
        # As variables, so that braces in an answer are no variables of their own.
        limit = self._max_text_length(self._channels.list_for_project(form.project_id))
        names = {lang: f"form_{lang.replace('-', '_')}" for lang in self._settings.languages}
        message = MailingMessage(
            text={lang: f"{{{{ {name} }}}}" for lang, name in names.items()},
            variables={
                name: self._text(form, submission, lang, to.text, limit)
                for lang, name in names.items()
            },
            format="plain",
        )
        new = NewMailing(SOURCE, message, Audience(tags_any=[to.tag]))
        mailing = await self._mailings.start(tx, form.project_id, new)
        return mailing.job_id

    async def _to_ticket(self, tx: Tx, form: Form, submission: Submission, to: ToTicket) -> str:
        lang = self._settings.default_lang
        name, email = customer_of(submission.ordered)
        ticket_id = await self._tickets.open(
            tx,
            TicketRequest(
                project_id=form.project_id,
                source="form",
                source_id=submission.submission_id,
                text=self._text(form, submission, lang, None, self._max_text_length()),
                subject=in_language(to.subject or form.definition.title, lang, lang),
                subscriber_id=submission.subscriber_id,
                customer_name=name,
                customer_email=email,
                priority=to.priority,
                tags=tuple(to.tags),
                file_ids=tuple(files_of(submission.ordered)),
            ),
        )
        if ticket_id is None:
            raise NotFound(NO_HELPDESK)
        return ticket_id

    def _max_text_length(self, channels: Iterable[Channel] = ()) -> int:
        """How long a text may be, in UTF-16 code units: one too long would reach nobody."""
        longest = (channel.capabilities.max_text_length for channel in channels)
        return min((self._settings.limits.text_length, *longest))

    def _text(
        self, form: Form, submission: Submission, lang: str, head: Localized | None, limit: int
    ) -> str:
        settings = self._settings
        return summarized(
            self._texts.into(lang, __name__),
            form.definition,
            submission.ordered,
            lang=lang,
            default_lang=settings.default_lang,
            head=head,
            limit=limit,
        )
