"""The event that the plugin emits."""

from pydantic import Field

from msgsvc_auth.models import STATE, SessionId
from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.api.types import Time
from msgsvc_core.events import EventSpec
from msgsvc_core.subscribers.models import ProvenIdentity


class AuthCompleted(ResponseModel):
    """Fields of `auth.completed`, with the subscriber's."""

    session_id: SessionId
    state: str = Field(
        description="That of the request; empty if it had none, and on a page of another plugin.",
        examples=[STATE],
    )
    auth_time: Time = Field(description="When the person confirmed.")
    proves: ProvenIdentity


AUTH_EVENTS = (
    EventSpec(
        "auth.completed",
        "The user confirmed the sign-in. Emitted immediately, whether or not they "
        "return to the site.",
        AuthCompleted,
        group="sign_in",
        title=lambda _, _data: _("Signed in"),
    ),
)
