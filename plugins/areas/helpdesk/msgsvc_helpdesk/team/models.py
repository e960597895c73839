"""How a project's agents share its tickets: settings of the project and of each agent."""

from typing import Annotated, Literal

from pydantic import Field

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.pagination import NextCursor
from msgsvc_core.api.types import Kept, Time
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.values import value_object

Method = Literal["manual", "round_robin", "least_busy"]

_METHOD = (
    "How tickets that nobody has are assigned when they are opened or reopened: `manual` leaves them"
    " unassigned, `round_robin` takes agents in turn, `least_busy` the one with the fewest open tickets."
    " Null for the installation's setting `helpdesk.assignment`."
)
_AVAILABLE = "Whether tickets are assigned to this agent automatically."
_MAX_OPEN = (
    "Open tickets up to which more are assigned to this agent automatically; null for no limit."
)
_SHORTCUTS = "Whether single keys act on this agent's pages of tickets."

MaxOpen = Annotated[int | None, Field(ge=1, le=1000)]


class DeskSettings(RequestModel):
    """The helpdesk of a project. What is left out has its default."""

    assignment: Method | None = Field(None, description=_METHOD, examples=["least_busy"])


class UpdateDeskSettingsBody(RequestModel):
    """Changes of a project's helpdesk; omitted fields stay unchanged."""

    assignment: Method | None = Field(None, description=_METHOD, examples=["least_busy"])


class DeskSettingsAnswer(ResponseModel):
    """The helpdesk of a project."""

    assignment: Method | None = Field(description=_METHOD, examples=["least_busy"])

    @classmethod
    def of(cls, settings: DeskSettings) -> "DeskSettingsAnswer":
        return cls(**settings.model_dump())


@value_object
class AgentSettings:
    """What an agent has chosen; without a row, the defaults."""

    member_id: str
    available: bool = True
    max_open_tickets: int | None = None
    shortcuts: bool = True


class UpdateTicketAgentBody(RequestModel):
    """Changes of an agent's settings; omitted fields stay unchanged."""

    available: Kept[bool] = Field(None, description=_AVAILABLE, examples=[False])
    max_open_tickets: MaxOpen = Field(None, description=_MAX_OPEN, examples=[20])
    shortcuts: Kept[bool] = Field(None, description=_SHORTCUTS, examples=[True])


class AgentAnswer(ResponseModel):
    """A member who answers customers, and the open tickets that they have."""

    member_id: str = Field(description="Id of the member.", examples=[examples.MEMBER_ID])
    name: str = Field(description="The member's name, as colleagues see it.", examples=["Kim"])
    available: bool = Field(description=_AVAILABLE, examples=[True])
    max_open_tickets: int | None = Field(description=_MAX_OPEN, examples=[20])
    shortcuts: bool = Field(description=_SHORTCUTS, examples=[True])
    open_tickets: int = Field(
        description="Tickets with the status `open` that they have.", examples=[7]
    )


class AgentList(ResponseModel):
    """A page of the project's agents, newest first."""

    data: list[AgentAnswer] = Field(description="The agents of this page.")
    next_cursor: NextCursor


@value_object
class Viewer:
    """Somebody who has a ticket open. `viewer_id` is a member's, or the account of an owner who is none."""

    ticket_id: str
    viewer_id: str
    seen_at_ms: int
    is_typing: bool


class RecordTicketViewerBody(RequestModel):
    """The activity of a member who has the ticket open."""

    typing: bool = Field(
        False, description="Whether they are writing a reply or a note.", examples=[True]
    )


class ViewerAnswer(ResponseModel):
    """Somebody who has the ticket open."""

    member_id: str | None = Field(
        description="The member; null for an owner who has not become one yet.",
        examples=[examples.MEMBER_ID],
    )
    typing: bool = Field(description="Whether they are writing a reply or a note.", examples=[True])
    seen_at: Time = Field(description="When they were last seen there.", examples=[examples.TIME])

    @classmethod
    def of(cls, viewer: Viewer) -> "ViewerAnswer":
        is_member = viewer.viewer_id.startswith("mem_")
        return cls(
            member_id=viewer.viewer_id if is_member else None,
            typing=viewer.is_typing,
            seen_at=to_rfc3339(viewer.seen_at_ms),
        )


class ViewerList(ResponseModel):
    """A page of the members who have a ticket open, the newest member first."""

    data: list[ViewerAnswer] = Field(description="The viewers of this page.")
    next_cursor: NextCursor
