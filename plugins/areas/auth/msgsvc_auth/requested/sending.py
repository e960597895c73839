"""Sends a plugin's question by the subscriber's bot."""

from msgsvc_auth import texts
from msgsvc_auth.buttons import Chat, SealedButtons
from msgsvc_auth.guarantees import proves
from msgsvc_auth.models import NewSession
from msgsvc_auth.service import SignIn
from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.system_messages.outbox import BotOutbox
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import Conflict
from msgsvc_core.kernel.i18n import Texts
from msgsvc_core.messages.service import Messages
from msgsvc_core.plugins.sign_ins import DirectSignIn
from msgsvc_core.projects.service import Projects
from msgsvc_core.subscribers.models import Subscriber


class QuestionSender:
    """Writes the question in the person's language, with buttons that are sealed for them."""

    def __init__(
        self,
        *,
        texts: Texts,
        projects: Projects,
        channels: Channels,
        messages: Messages,
        outbox: BotOutbox,
        buttons: SealedButtons,
        sign_in: SignIn,
    ) -> None:
        self._texts = texts
        self._projects = projects
        self._channels = channels
        self._messages = messages
        self._outbox = outbox
        self._buttons = buttons
        self._sign_in = sign_in

    async def send(
        self, tx: Tx, new: NewSession, request: DirectSignIn, subscriber: Subscriber
    ) -> None:
        """After the commit, and not once nobody could answer in time.

        Raises `Conflict` if the bot is gone or can't be answered, `ValidationFailed` for a text that is too
        long.
        """
        bot, chat_id = subscriber.bot, subscriber.chat_id
        channel = await self._channels.get_bot(request.project_id, bot, subscriber.channel)
        if not channel.capabilities.asks_recipients:
            raise Conflict("people can't answer a bot on {name}", name=subscriber.channel)
        if not proves(channel, request.must_prove):
            raise Conflict(
                "a sign-in by {name} proves {identity}, and it must prove {choices}",
                name=subscriber.channel,
                identity=channel.capabilities.identity,
                choices=" or ".join(request.must_prove),
            )
        chat = Chat(bot, chat_id, subscriber.user_id)
        message = texts.direct_question(
            self._texts.into(self._texts.choose(request.lang, subscriber.lang), __name__),
            (await self._projects.get(tx, request.project_id)).public_name,
            new.session,
            text=request.text,
            details=request.details,
            numbers=self._sign_in.numbers_of(new.session),
            data=lambda choice: self._buttons.write(chat, choice, new.token),
        )
        self._messages.check_content(channel, message)
        expires_at_ms = new.session.expires_at_ms
        await self._outbox.send(
            tx,
            bot,
            chat_id,
            message.of_project(request.project_id),
            expires_at_ms=expires_at_ms,
        )
