"""Query, body and response of the mini app page."""

from pydantic import ConfigDict, Field

from msgsvc_auth.models import MAX_STATE_LENGTH
from msgsvc_core.api.endpoint import Query, RequestModel, ResponseModel
from msgsvc_core.subscribers.mini_app import MAX_INIT_DATA_LENGTH


class MiniAppQuery(Query):
    """The page's own address. Messengers add parameters of theirs to it, which are left alone."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    lang: str | None = Field(None, description="`en` or `ru`; without it, the browser's choice.")
    state: str = Field("", description="Returned with the code; read by the page's script.")
    channel: str | None = Field(
        None, description="The channel of the mini app, if two bots of the project share a token."
    )


class MiniAppSignInBody(RequestModel):
    """What the page was given by the messenger."""

    init_data: str = Field(
        max_length=MAX_INIT_DATA_LENGTH, description="The signed data, from the page's fragment."
    )
    channel: str | None = Field(
        None,
        description="The channel whose bot signed the data; by default all bots of the project are "
        "tried.",
    )
    state: str = Field("", max_length=MAX_STATE_LENGTH, description="Returned with the code.")


class MiniAppSignInAnswer(ResponseModel):
    """Where the page goes on."""

    redirect: str = Field(description="The link's callback, with `code` and `state`.")
