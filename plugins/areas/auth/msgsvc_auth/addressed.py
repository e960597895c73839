"""Sign-ins by address: the question goes to a mailbox or a phone before its owner ever wrote."""

from msgsvc_auth import texts
from msgsvc_auth.buttons import Chat, SealedButtons
from msgsvc_auth.models import CreateSessionBody, NewSession
from msgsvc_auth.service import SignIn
from msgsvc_auth.session_limits import AddressLimits
from msgsvc_core.channels import Channel
from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.system_messages.outbox import BotOutbox
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.kernel.i18n import Texts
from msgsvc_core.projects.service import Projects
from msgsvc_core.subscribers.service import Subscribers


class AddressedSignIns:
    """Opens sessions whose question is sent to an address at once, instead of waiting behind a link.

    A blocked address is sent nothing, and nobody is told: anybody may have typed it.
    """

    def __init__(
        self,
        *,
        texts: Texts,
        projects: Projects,
        channels: Channels,
        subscribers: Subscribers,
        outbox: BotOutbox,
        buttons: SealedButtons,
        sign_in: SignIn,
        limits: AddressLimits,
    ) -> None:
        self._texts = texts
        self._projects = projects
        self._channels = channels
        self._subscribers = subscribers
        self._outbox = outbox
        self._buttons = buttons
        self._sign_in = sign_in
        self._limits = limits

    async def open(self, tx: Tx, project_id: str, body: CreateSessionBody) -> NewSession:
        """Opens the session, and has its question sent after the commit.

        Raises what `SignIn.open` does, `ValidationFailed` for what is no address, and without a channel of
        addresses.
        """
        assert body.address is not None
        if body.channel is None:
            raise ValidationFailed("say on which the address is", field="channel")
        channel = self._channels.of_addresses(project_id, body.channel)
        address = self._channels.parse_address(channel, body.address)
        new = await self._sign_in.open(tx, project_id, body)
        await self._ask(tx, new, channel, address)
        return new

    async def ask(self, tx: Tx, new: NewSession, channel_name: str, typed: str) -> None:
        """Has the question of an open session sent after the commit, in the session's language.

        Raises `ValidationFailed` for what is no address on that channel, and `RateLimitProject` for one that
        was sent too many.
        """
        channel = self._channels.of_addresses(new.session.project_id, channel_name)
        await self._ask(tx, new, channel, self._channels.parse_address(channel, typed))

    async def _ask(self, tx: Tx, new: NewSession, channel: Channel, address: str) -> None:
        project_id = new.session.project_id
        await self._limits.count(tx, project_id, channel.key, address)
        chat = Chat(channel.key, address, address)
        known = await self._subscribers.language_of(tx, channel.key, address)
        lang = self._texts.choose(new.session.lang, known)
        question = texts.question(
            self._texts.into(lang, __name__),
            (await self._projects.get(tx, project_id)).public_name,
            new.session,
            new.session.created_at_ms,
            numbers=self._sign_in.numbers_of(new.session),
            data=lambda choice: self._buttons.write(chat, choice, new.token),
        )
        # The last step, so that a blocked address is counted and answered as any other.
        person = await self._subscribers.find_by_user(tx, project_id, channel.name, address)
        if person is not None and person.status == "blocked":
            return
        await self._outbox.send(
            tx,
            channel.key,
            address,
            question.of_project(project_id),
            expires_at_ms=new.session.expires_at_ms,
            lang=lang,
        )
