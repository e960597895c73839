"""The bot's side of a sign-in: asks on opening a link, and applies the answer."""

from msgsvc_auth import buttons, payloads, texts
from msgsvc_auth.buttons import Chat, SealedButtons
from msgsvc_auth.callbacks import with_code
from msgsvc_auth.confirming import Confirmed
from msgsvc_auth.guarantees import accepts, proves
from msgsvc_auth.links import StaticLinks
from msgsvc_auth.models import NewSession, Session
from msgsvc_auth.service import SignIn
from msgsvc_core.channels import (
    ButtonPressed,
    InboundContext,
    InboundRule,
    OutgoingMessage,
    Started,
)
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import NotFound, SubscriberNotFound
from msgsvc_core.kernel.i18n import Texts, Translate
from msgsvc_core.plugins.sign_ins import SignIns
from msgsvc_core.projects.models import Project
from msgsvc_core.projects.service import Projects


class SignInBot:
    """Asks the user, and handles the answer. A session has no user until its first Yes."""

    def __init__(
        self,
        *,
        clock: Clock,
        texts: Texts,
        projects: Projects,
        buttons: SealedButtons,
        sign_in: SignIn,
        links: StaticLinks,
        requesters: SignIns,
    ) -> None:
        self._clock = clock
        self._texts = texts
        self._projects = projects
        self._buttons = buttons
        self._sign_in = sign_in
        self._links = links
        self._requesters = requesters

    def rules(self) -> list[InboundRule]:
        return [
            InboundRule("start", self._started, prefix=payloads.PREFIX),
            InboundRule("button", self._pressed, prefix=buttons.PREFIX),
        ]

    async def _started(self, ctx: InboundContext) -> bool:
        """Asks whether to sign in. What can't be asked any more is left to the core's answer."""
        opened = await self._opened(ctx)
        if opened is None:
            return False
        session = opened.session
        project, chat = await self._project(ctx, session), Chat.of(ctx)
        await ctx.reply(
            texts.question(
                self._language(ctx, session),
                project.public_name,
                session,
                self._clock.now_ms(),
                numbers=self._sign_in.numbers_of(session),
                data=lambda choice: self._buttons.write(chat, choice, opened.token),
            )
        )
        return True

    async def _opened(self, ctx: InboundContext) -> NewSession | None:
        """The session of the start payload, if it still waits for an answer."""
        assert isinstance(ctx.update, Started)
        payload = payloads.read_payload(ctx.update.payload)
        if payload is None:
            return None
        if payload.token is not None:
            session = await self._sign_in.find_by_token(ctx.tx, payload.token)
            if session is None or not await self._may_be_asked(ctx, session):
                return None
            return NewSession(session, payload.token)
        assert payload.slug is not None
        link = await self._links.find_started(ctx.tx, payload.slug)
        if link is None or not await self._may_act(ctx, link.project_id):
            return None
        if not proves(ctx.bot, link.must_prove):
            return None
        return await self._sign_in.open_by_link(ctx.tx, link)

    async def _may_be_asked(self, ctx: InboundContext, session: Session) -> bool:
        return (
            session.status(self._clock.now_ms()) == "pending"
            # Its token is in the buttons that one person was sent: nobody else is to be asked.
            and not session.is_direct
            and accepts(session, ctx.bot)
            and await self._may_act(ctx, session.project_id)
        )

    async def _pressed(self, ctx: InboundContext) -> bool:
        """Yes, Cancel, or a number. A press by another person gets the core's default reply."""
        pressed = self._buttons.read(ctx)
        if pressed is None:
            return False
        choice, token = pressed
        session = await self._sign_in.find_by_token(ctx.tx, token)
        if session is None:
            await self._reply_too_late(ctx, ctx._)
        elif choice == "n":
            await self._cancel(ctx, session)
        else:
            await self._confirm(ctx, session, None if choice == "y" else choice)
        return True

    async def _confirm(self, ctx: InboundContext, session: Session, number: int | None) -> None:
        if number != session.match_number:
            await self._deny_wrong_number(ctx, session)
            return
        update = ctx.update
        project = await self._project(ctx, session)
        confirmed = None
        if project.status == "active":
            confirmed = await self._sign_in.confirm(
                ctx.tx, session, ctx.channel, update.user, update.chat_id, number=number
            )
        if confirmed is None:
            await self._refuse(ctx, session)
            return
        await ctx.enter_project(session.project_id)
        _, return_url = self._language(ctx, session), _return_url(confirmed)
        # Not every messenger takes every address: some want a dot in the host, or fewer characters.
        await self._replace_question(
            ctx,
            texts.confirmed(_, session, project.public_name, return_url),
            otherwise=None
            if return_url is None
            else texts.confirmed(_, session, project.public_name, None),
        )

    async def _cancel(self, ctx: InboundContext, session: Session) -> None:
        if not await self._denied(ctx, session):
            return
        project = await self._project(ctx, session)
        message = texts.denied(self._language(ctx, session), session, project.public_name)
        await self._replace_question(ctx, message)

    async def _deny_wrong_number(self, ctx: InboundContext, session: Session) -> None:
        """One guess is all there is: of three numbers, the second would be right half the time."""
        if not await self._denied(ctx, session):
            return
        project = await self._project(ctx, session)
        message = texts.wrong_number(self._language(ctx, session), session, project.public_name)
        await self._replace_question(ctx, message, notice=message.text)

    async def _denied(self, ctx: InboundContext, session: Session) -> bool:
        """Ends a session, and notifies the plugin that opened it; False if it does not wait any more."""
        if not await self._sign_in.deny(ctx.tx, session, ctx.channel):
            await self._refuse(ctx, session)
            return False
        if session.source is not None and session.source_id is not None:
            await self._requesters.notify_denied(
                ctx.tx, session.project_id, session.source, session.source_id
            )
        return True

    async def _refuse(self, ctx: InboundContext, session: Session) -> None:
        """The session waits no more."""
        _ = self._language(ctx, session)
        if await self._is_own(ctx, session):
            # The second of two quick presses: the message with the way back must stay.
            await ctx.answer_button(texts.already(_, session))
        else:
            await self._reply_too_late(ctx, _)

    async def _is_own(self, ctx: InboundContext, session: Session) -> bool:
        """Whether this person confirmed it. Read again: it may have changed since, or been erased with the
        person who confirmed."""
        try:
            now = await self._sign_in.get(session.project_id, session.session_id, ctx.tx)
            return await self._sign_in.is_confirmed_by(ctx.tx, now, ctx.channel, ctx.update.user)
        except (NotFound, SubscriberNotFound):
            return False

    async def _reply_too_late(self, ctx: InboundContext, _: Translate) -> None:
        message = texts.too_late(_)
        await self._replace_question(ctx, message, notice=message.text)

    async def _replace_question(
        self,
        ctx: InboundContext,
        message: OutgoingMessage,
        notice: str | None = None,
        otherwise: OutgoingMessage | None = None,
    ) -> None:
        assert isinstance(ctx.update, ButtonPressed)
        await ctx.edit(ctx.update.message_ref, message, otherwise)
        await ctx.answer_button(notice)

    def _language(self, ctx: InboundContext, session: Session) -> Translate:
        """The site's choice, for the person comes from its page; else the person's own."""
        return self._texts.into(session.lang, __name__) if session.lang else ctx._

    async def _project(self, ctx: InboundContext, session: Session) -> Project:
        return await self._projects.get(ctx.tx, session.project_id)

    async def _may_act(self, ctx: InboundContext, project_id: str) -> bool:
        """Whether the project is active, and this bot one that serves it."""
        if not ctx.serves(project_id):
            return False
        return (await self._projects.get(ctx.tx, project_id)).status == "active"


def _return_url(confirmed: Confirmed) -> str | None:
    session = confirmed.session
    if session.callback_url is None:
        return None
    return with_code(session.callback_url, confirmed.code, session.state)
