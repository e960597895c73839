"""A project with its plan, its limits and its channels."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Protocol

from msgsvc_core.config.limits import LimitSettings
from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.i18n import Title
from msgsvc_core.projects.models import ProjectAnswer, ProjectChannelAnswer, ProjectLimitsAnswer
from msgsvc_core.projects.service import Projects


class NamedPlan(Protocol):
    """The plan of a project's owner."""

    @property
    def name(self) -> str: ...


class ChannelOwner(Protocol):
    """The owner of a channel."""

    @property
    def project_id(self) -> str | None:
        """None for a channel that serves every project."""
        ...


class ProjectChannel(Protocol):
    """A channel that a project can use."""

    @property
    def name(self) -> str: ...

    @property
    def identity(self) -> ChannelOwner: ...

    def link(self, payload: str) -> str | None:
        """A link to its bot; None while the bot's profile is unknown."""
        ...


class ProjectOverview:
    """The data of `GET /v1/project`.

    `limits_of_plugins` are values by the names of their settings, `limit_titles` what pages call them.
    `plan_of` returns the plan of a project,
    None without billing; `channels_of` lists its channels.
    """

    def __init__(
        self,
        *,
        projects: Projects,
        limits: LimitSettings,
        limits_of_plugins: Mapping[str, int],
        limit_titles: Mapping[str, Title],
        plan_of: Callable[[Tx, str], Awaitable[NamedPlan | None]],
        channels_of: Callable[[str], Iterable[ProjectChannel]],
    ) -> None:
        self._projects = projects
        self.limits = ProjectLimitsAnswer.of(limits, limits_of_plugins)
        self.limit_titles = limit_titles
        self._plan_of = plan_of
        self._channels_of = channels_of

    async def get(self, tx: Tx, project_id: str) -> ProjectAnswer:
        """The current state of the project; that of the authentication may be a second old."""
        project = await self._projects.get(tx, project_id)
        plan = await self._plan_of(tx, project_id)
        texts = await self._projects.texts(tx, project_id)
        return ProjectAnswer(
            project_id=project.project_id,
            name=project.name,
            status=project.status,
            plan=None if plan is None else plan.name,
            created_at=to_rfc3339(project.created_at_ms),
            welcome=texts.welcome,
            farewell=texts.farewell,
            link_tracking=project.link_tracking,
            limits=self.limits,
            channels=[
                ProjectChannelAnswer(
                    name=channel.name,
                    own=channel.identity.project_id is not None,
                    link=channel.link("hello"),
                )
                for channel in self._channels_of(project_id)
            ],
        )
