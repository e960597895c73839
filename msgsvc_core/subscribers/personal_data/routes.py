"""GET /v1/people/export."""

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Router
from msgsvc_core.api.exports import Exports
from msgsvc_core.db import Database
from msgsvc_core.kernel.errors import (
    InvalidExternalId,
    MutuallyExclusiveIdentifiers,
    SubscriberNotFound,
)
from msgsvc_core.subscribers.personal_data.models import PersonalDataAnswer, PersonalDataQuery
from msgsvc_core.subscribers.personal_data.service import PersonalDataExport

router = Router(
    area="personal_data",
    description="All that is stored about a person, in every area.",
    group="people",
)


@router.get(
    "/v1/people/export",
    holds_connection=False,
    errors=(InvalidExternalId, MutuallyExclusiveIdentifiers, SubscriberNotFound),
)
async def export_personal_data(
    ctx: Context,
    query: PersonalDataQuery,
    personal_data: PersonalDataExport,
    db: Database,
    exports: Exports,
) -> PersonalDataAnswer:
    """Shows all that is stored about a person, for a request of that person.

    For each channel there are the profile and, by section, messages, events, files, one-time codes (without
    the codes), form answers, tickets with internal notes, sign-ins and what further plugins declare. Look
    through it before you hand it on: tickets may name other people.
    """
    with exports.slot(ctx.project_id):
        found = await personal_data.find(
            db,
            ctx.project_id,
            subscriber_id=query.subscriber_id,
            external_id=query.external_id,
        )
        return PersonalDataAnswer(
            exported_at=personal_data.now(),
            subscribers=[await personal_data.collect(db, each) for each in found],
        )
