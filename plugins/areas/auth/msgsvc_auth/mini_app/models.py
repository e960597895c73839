"""Query, body and response of the mini app page."""

from pydantic import ConfigDict, Field

from msgsvc_auth.models import CALLBACK_URL, CODE, MAX_STATE_LENGTH, STATE
from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import Query, RequestModel, ResponseModel
from msgsvc_core.subscribers.mini_app import MAX_INIT_DATA_LENGTH


class MiniAppQuery(Query):
    """The page's own address. Messengers add parameters of theirs to it, which are left alone."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    lang: str | None = Field(
        None,
        description="Language of the page, if the service has it; without it, the browser's choice.",
        examples=["en"],
    )
    state: str = Field(
        "", description="Returned with the code; read by the page's script.", examples=[STATE]
    )
    channel: str | None = Field(
        None,
        description="The channel of the mini app, if two bots of the project share a token.",
        examples=[examples.CHANNEL],
    )


class MiniAppSignInBody(RequestModel):
    """What the page was given by the messenger."""

    init_data: str = Field(
        max_length=MAX_INIT_DATA_LENGTH,
        description="The signed data, from the page's fragment.",
        examples=[examples.INIT_DATA],
    )
    channel: str | None = Field(
        None,
        description="The channel whose bot signed the data; by default all bots of the project are "
        "tried.",
        examples=[examples.CHANNEL],
    )
    state: str = Field(
        "", max_length=MAX_STATE_LENGTH, description="Returned with the code.", examples=[STATE]
    )


class MiniAppSignInAnswer(ResponseModel):
    """Where the page goes on."""

    redirect: str = Field(
        description="The link's callback, with `code` and `state`.",
        examples=[f"{CALLBACK_URL}?code={CODE}&state={STATE}"],
    )
