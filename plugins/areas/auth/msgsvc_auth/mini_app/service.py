"""Sign-in in a mini app.

The page runs inside the messenger, so no second device is involved whose code could be phished, and no bot
has to ask: the platform's signature identifies the user who pressed Yes.
"""

from msgsvc_auth.callbacks import with_code
from msgsvc_auth.errors import AuthMiniAppUsed
from msgsvc_auth.guarantees import proves
from msgsvc_auth.links import StaticLinks
from msgsvc_auth.mini_app import store
from msgsvc_auth.mini_app.models import MiniAppSignInBody
from msgsvc_auth.models import StaticLink
from msgsvc_auth.payloads import PREFIX, link_payload
from msgsvc_auth.service import SignIn
from msgsvc_core.channels import Channel, InvalidMiniApp, MiniAppUser
from msgsvc_core.channels.registry import Channels
from msgsvc_core.db import Database, Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import NotFound, ValidationFailed
from msgsvc_core.projects.models import Project
from msgsvc_core.projects.service import Projects
from msgsvc_core.security import digest
from msgsvc_core.subscribers import mini_app


class MiniAppSignIn:
    """Signs in the user of a mini app, by a static link's slug; the signed data must not be older than
    `minutes`."""

    def __init__(
        self,
        *,
        clock: Clock,
        db: Database,
        projects: Projects,
        channels: Channels,
        sign_in: SignIn,
        links: StaticLinks,
        minutes: int,
    ) -> None:
        self._clock = clock
        self._db = db
        self._projects = projects
        self._channels = channels
        self._sign_in = sign_in
        self._links = links
        self._minutes = minutes

    async def get(self, tx: Tx, slug: str) -> tuple[StaticLink, Project]:
        """The link, of whatever project. Raises `NotFound`, for a disabled project's as well."""
        link = await self._links.find_started(tx, slug)
        if link is not None:
            project = await self._projects.get(tx, link.project_id)
            if project.status == "active":
                return link, project
        raise NotFound("there is no static link {slug!r}", slug=slug)

    async def sign_in(self, slug: str, body: MiniAppSignInBody) -> str:
        """Where to lead the person: the link's callback with a code.

        Raises `NotFound`, `ValidationFailed` for data that no bot of the project signed, too old data
        and data for another link, `AuthMiniAppUsed`, and `Conflict` where the bot can't write to the
        person.
        """
        async with self._db.read() as tx:
            link, _ = await self.get(tx, slug)
        channel = self._signer(link.project_id, body)
        opened = mini_app.verify(
            channel,
            body.init_data,
            max_age_minutes=self._minutes,
            now_ms=self._clock.now_ms(),
        )
        _check_is_for(link, channel, opened)
        if not proves(channel, link.must_prove):
            raise ValidationFailed(
                "a sign-in by {name} proves {identity}, and it must prove {choices}",
                field="channel",
                name=channel.name,
                identity=channel.capabilities.identity,
                choices=" or ".join(link.must_prove),
            )
        # Only now: anybody may post anything, and must not take the one writer of SQLite for it.
        async with self._db.transaction() as tx:
            if not await self._use(tx, channel, opened):
                raise AuthMiniAppUsed(
                    "has signed in before; have the mini app opened again", field="init_data"
                )
            # The chat before the person: updates from the messenger lock them in this order too.
            chat_id = await mini_app.enter(
                tx, link.project_id, channel, opened, now_ms=self._clock.now_ms()
            )
            new = await self._sign_in.open_by_link(tx, link, state=body.state)
            confirmed = await self._sign_in.confirm(
                tx, new.session, channel.key, opened.user, chat_id
            )
        assert confirmed is not None, "nobody else knows of this session yet"
        return with_code(link.callback_url, confirmed.code, body.state)

    def _signer(self, project_id: str, body: MiniAppSignInBody) -> Channel:
        """The channel whose bot signed the data, found by the signature."""
        if body.channel is not None:
            self._channels.check_name(project_id, body.channel)
        for channel in self._channels.list_for_project(project_id):
            if body.channel in {None, channel.name} and _has_signed(channel, body.init_data):
                return channel
        raise ValidationFailed("no bot of the project has signed this", field="init_data")

    async def _use(self, tx: Tx, channel: Channel, opened: MiniAppUser) -> bool:
        # Not the data itself: the same can be written in many ways that are all signed.
        what = digest(f"{channel.key}\n{opened.user.user_id}\n{opened.signed_at_ms}")
        return await store.use(tx, what, opened.signed_at_ms + self._minutes * 60 * 1000)


def _has_signed(channel: Channel, init_data: str) -> bool:
    if not channel.capabilities.mini_app:
        return False
    try:
        channel.verify_mini_app(init_data)
    except InvalidMiniApp:
        return False
    return True


def _check_is_for(link: StaticLink, channel: Channel, opened: MiniAppUser) -> None:
    """Data of a bot that many projects share says who, and not where: the start payload does.

    Otherwise what was given to one project's page would sign in to all the others.
    """
    meant = link_payload(link.slug)
    shared = channel.identity.project_id is None
    if opened.start_payload != meant and (shared or opened.start_payload.startswith(PREFIX)):
        raise ValidationFailed(
            "the mini app was not opened to sign in here; its link ends with `startapp={parameter}`",
            field="init_data",
            parameter=meant,
        )


async def purge_uses(tx: Tx, expired_before_ms: int, limit: int) -> int:
    """Deletes up to `limit` records of used data that has expired; returns how many."""
    return await store.purge_uses(tx, expired_before_ms, limit)
