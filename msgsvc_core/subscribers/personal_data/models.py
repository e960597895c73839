"""The export of a person's data, in the API."""

from typing import Any

from pydantic import Field

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import Query, ResponseModel
from msgsvc_core.api.types import Time


class PersonalDataQuery(Query):
    """Whose data: one of the two."""

    external_id: str | None = Field(
        None,
        description="The person with this id of yours, on all channels.",
        examples=[examples.EXTERNAL_ID],
    )
    subscriber_id: str | None = Field(
        None,
        description="One subscriber, e.g. without an `external_id`.",
        examples=[examples.SUBSCRIBER_ID],
    )


class SubscriberData(ResponseModel):
    """All that is stored about a person on one channel."""

    profile: dict[str, Any] = Field(
        description="The subscriber, with their ids on the platform and their verified contacts.",
        examples=[{"subscriber_id": examples.SUBSCRIBER_ID, "first_name": "Ann"}],
    )
    data: dict[str, list[dict[str, Any]]] = Field(
        description="Rows by section, e.g. `messages`, `tickets`, `one_time_codes`. Plugins add sections.",
        examples=[
            {"permissions": [{"permission": examples.PERMISSION, "granted_at": examples.TIME}]}
        ],
    )


class PersonalDataAnswer(ResponseModel):
    """All that is stored about a person."""

    exported_at: Time = Field(description="When it was read.", examples=[examples.TIME])
    subscribers: list[SubscriberData] = Field(description="The person on each channel.")
