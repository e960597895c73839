"""Query, body and response of the mini app page."""

from pydantic import ConfigDict, Field

from msgsvc_auth.models import MAX_STATE_LENGTH
from msgsvc_core.api.endpoint import Query, RequestModel, ResponseModel
from msgsvc_core.subscribers.mini_app import MAX_INIT_DATA_LENGTH


class MiniAppQuery(Query):
    """The page's own address. Messengers add parameters of theirs to it, which are left alone."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    lang: str | None = Field(None, description="`en` or `ru`; without it, the browser's choice.")
    state: str = Field("", description="Comes back with the code; read by the page's script.")
    channel: str | None = Field(
        None, description="Whose mini app it is, where two bots of the project have one token."
    )


class MiniAppSignInBody(RequestModel):
    """What the page was given by the messenger."""

    init_data: str = Field(
        max_length=MAX_INIT_DATA_LENGTH, description="The signed data, from the page's fragment."
    )
    channel: str | None = Field(
        None, description="Whose bot signed; without it, the project's bots are tried."
    )
    state: str = Field("", max_length=MAX_STATE_LENGTH, description="Comes back with the code.")


class MiniAppSignInAnswer(ResponseModel):
    """Where the page goes on."""

    redirect: str = Field(description="The link's callback, with `code` and `state`.")
