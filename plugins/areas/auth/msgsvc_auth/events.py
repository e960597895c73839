"""The event that the plugin emits."""

from pydantic import Field

from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.events import EventSpec


class AuthCompleted(ResponseModel):
    """Fields of `auth.completed`, beside the subscriber's."""

    session_id: str
    state: str = Field(
        description="The `external_id` of the session; empty for a static link, and on a page of another "
        "plugin."
    )
    auth_time: str = Field(description="When the person pressed Yes, RFC 3339 in UTC.")


AUTH_EVENTS = (
    EventSpec(
        "auth.completed",
        "The user confirmed the sign-in. Emitted immediately, whether or not they "
        "return to the site.",
        AuthCompleted,
    ),
)
