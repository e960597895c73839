"""What a sign-in has to prove of a person, and the channels that prove it."""

from collections.abc import Sequence

from msgsvc_auth.models import Session
from msgsvc_core.channels import Channel, Identity
from msgsvc_core.channels.registry import Channels
from msgsvc_core.kernel.errors import Unavailable, ValidationFailed


class Guarantees:
    """Which of a project's channels a sign-in may use: by its `channel`, and by `must_prove`, of which one is
    enough; empty for any."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels

    def check(
        self,
        project_id: str,
        channel: str | None,
        must_prove: Sequence[Identity],
        *,
        by_address: bool = False,
    ) -> None:
        """Raises `ValidationFailed` for a channel that is unknown, that nobody can answer, or that proves
        something else, and without `channel` if no channel of the project is left. A question that is sent
        `by_address` can be answered on further channels."""
        if channel is not None:
            self._channels.check_name(project_id, channel)
            found = self._channels.resolve(project_id, channel)
            if found is not None and not proves(found, must_prove):
                raise ValidationFailed(
                    "a sign-in by {name} proves {identity}, and it must prove {choices}",
                    field="channel",
                    name=channel,
                    identity=found.capabilities.identity,
                    choices=" or ".join(must_prove),
                )
        if not by_address:
            self._channels.check_answers(project_id, channel)
        if channel is None and must_prove and not self._proving(project_id, must_prove):
            raise ValidationFailed(
                "no channel of the project proves {choices}",
                field="must_prove",
                choices=" or ".join(must_prove),
            )

    def links(
        self, project_id: str, payload: str, channel: str | None, must_prove: Sequence[Identity]
    ) -> dict[str, str]:
        """The links that start the bots in question with `payload`, per channel.

        Raises `Unavailable` while no bot is ready.
        """
        names = None if channel is None else [channel]
        if must_prove:
            proving = [each.name for each in self._proving(project_id, must_prove)]
            names = [name for name in proving if channel in {None, name}]
        return self._channels.deep_links(project_id, payload, names, asks=True)

    def links_of_page(
        self, project_id: str, payload: str, channel: str | None, must_prove: Sequence[Identity]
    ) -> dict[str, str]:
        """As `links`; none if people can only be asked at their address."""
        try:
            return self.links(project_id, payload, channel, must_prove)
        except Unavailable:
            if self.of_addresses(project_id, channel, must_prove):
                return {}
            raise

    def of_addresses(
        self, project_id: str, channel: str | None, must_prove: Sequence[Identity]
    ) -> list[Channel]:
        """The channels on which people can be asked at their address."""
        return [
            each
            for each in self._channels.list_for_project(project_id)
            if each.capabilities.addresses
            and each.capabilities.asks_recipients
            and channel in {None, each.name}
            and proves(each, must_prove)
        ]

    def _proving(self, project_id: str, must_prove: Sequence[Identity]) -> list[Channel]:
        return [
            each
            for each in self._channels.list_for_project(project_id)
            if each.capabilities.asks_recipients and proves(each, must_prove)
        ]


def proves(channel: Channel, must_prove: Sequence[Identity]) -> bool:
    """Whether a sign-in on the channel proves one of these."""
    return not must_prove or channel.capabilities.identity in must_prove


def accepts(session: Session, channel: Channel) -> bool:
    """Whether a session may be confirmed on the channel."""
    return session.channel in {None, channel.name} and proves(channel, session.must_prove)
