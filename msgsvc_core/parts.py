"""How a package is put together: what it declares, and how its objects are built.

    PART = Part(
        build=(_tags, _subscribers),
        endpoints=router.endpoints,
        personal_data=PERSONAL_DATA,
    )

    def _tags(*, clock: Clock, jobs: JobQueue, settings: Settings, hook: HookRelay) -> Built:
        tags = Tags(clock=clock, jobs=jobs, max_tags=settings.limits.tags, ...)
        return Built(provides=[tags], jobs=lambda: [tags.spec])

Each package of the core has one `PART`, in its `part.py`; `msgsvc_core/core_parts.py` lists them. A
builder names the objects that it uses by their types and is called as soon as all of them exist, so the order
of builders does not matter. An object that is built later, and used only in calls, is a `Later`. Plugins use
the same builders, see `msgsvc_core/plugins/composed.py`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.config.limits import LimitSettings
from msgsvc_core.db import Tx
from msgsvc_core.db.personal_data import PersonalData
from msgsvc_core.db.retention import RetentionRule
from msgsvc_core.jobs import JobContext, JobSpec, LaneSpec
from msgsvc_core.kernel.providers import Providers
from msgsvc_core.security.sealed import SealedColumn


class Eraser(Protocol):
    """Deletes a subscriber's data of one owner of tables, including copies of events.

    Called by a job, outside a transaction, and again if any eraser fails, so it must be idempotent. Returns
    the number of rows that can't be deleted yet, or None. Raises `Stopping` when the runner is shutting down.
    """

    async def __call__(
        self, ctx: JobContext, project_id: str, subscriber_id: str
    ) -> int | None: ...


#: Moves what else is stored by a person's id: (project, the id that ends, the id that stays).
OnMerged = Callable[[Tx, str, str, str], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """Objects that a builder made, and what they contribute. The functions are called when the service has
    been built, or when it is started."""

    #: Handlers and other builders may ask for these, each by its class.
    provides: Sequence[object] = ()
    #: The same under a protocol or base class.
    provides_as: Mapping[Any, object] = field(default_factory=dict)
    jobs: Callable[[], Sequence[JobSpec]] = tuple
    lanes: Callable[[], Sequence[LaneSpec]] = tuple
    #: The `InboundRule`s.
    inbound: Callable[[], Sequence[Any]] = tuple


def _keeps_all(_limits: LimitSettings) -> Sequence[RetentionRule]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A package of the core. Its functions get the objects that they use by the types of their parameters."""

    build: Sequence[Callable[..., Built]] = ()
    endpoints: Sequence[Endpoint] = ()
    #: The `EventSpec`s.
    events: Sequence[Any] = ()
    #: Columns with encrypted values.
    sealed: Sequence[SealedColumn] = ()
    personal_data: Sequence[PersonalData] = ()
    #: Columns that a copy of the database leaves out, with the reason.
    not_copied: Mapping[str, str] = field(default_factory=dict)
    retention: Callable[[LimitSettings], Sequence[RetentionRule]] = _keeps_all
    #: `Eraser`s, whose further parameters are filled in by type.
    erasers: Sequence[Callable[..., Any]] = ()
    on_merged: Sequence[OnMerged] = ()
    #: Returns routes of pages; called when the application is built, which workers do without.
    pages: Sequence[Callable[..., Sequence[Any]]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Declarations:
    """What all parts and plugins declare together, for the objects that work through it."""

    sealed: Sequence[SealedColumn]
    personal_data: Sequence[PersonalData]
    #: The plugins' last.
    erasers: Sequence[Eraser]
    on_merged: Sequence[OnMerged]


def build_parts(parts: Sequence[Part], providers: Providers) -> list[Built]:
    """Calls the parts' builders, each once the objects that it uses exist; returns what they built, in the
    order of the parts. Raises `NotProvided` if something is asked for that nothing builds."""
    builders = [build for part in parts for build in part.build]
    found: dict[Callable[..., Built], Built] = {}
    while waiting := [build for build in builders if build not in found]:
        # If none is ready, binding the first one says what it lacks.
        for build in [each for each in waiting if providers.can_bind(each)] or waiting:
            built = found[build] = providers.bind(build, ())()
            for provided in built.provides:
                providers.add(provided)
            for kind, provided in built.provides_as.items():
                providers.add(provided, kind=kind)
    return [found[build] for build in builders]
