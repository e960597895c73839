"""/v1/people."""

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Router
from msgsvc_core.api.pagination import PageQuery, position_of
from msgsvc_core.kernel.errors import (
    BadRequest,
    Conflict,
    InvalidExternalId,
    SubscriberNotFound,
)
from msgsvc_core.subscribers.models import SubscriberAnswer
from msgsvc_core.subscribers.people.models import (
    MergePeopleBody,
    PersonAnswer,
    PersonList,
    PersonQuery,
    SetPersonConsentBody,
    SplitPersonBody,
)
from msgsvc_core.subscribers.people.service import People

router = Router(area="subscribers")


@router.get("/v1/people", errors=(BadRequest,))
async def list_people(ctx: Context, query: PageQuery, people: People) -> PersonList:
    """Lists people with all their addresses, by `external_id`; subscribers without one are not among them."""
    found = await people.page(ctx.tx, ctx.project_id, query)
    page, following = query.cut(
        found,
        lambda person: position_of(0, person.external_id),
        by_time=False,
    )
    return PersonList(data=[PersonAnswer.of(person) for person in page], next_cursor=following)


@router.get("/v1/people/lookup", errors=(InvalidExternalId, SubscriberNotFound))
async def get_person(ctx: Context, query: PersonQuery, people: People) -> PersonAnswer:
    """Shows a person by your own id, with all addresses and accounts.

    The id is a parameter, because it may contain any characters, such as a slash.
    """
    return PersonAnswer.of(await people.get(ctx.tx, ctx.project_id, query.external_id))


@router.post("/v1/people/consent", errors=(Conflict, InvalidExternalId, SubscriberNotFound))
async def set_person_consent(
    ctx: Context, body: SetPersonConsentBody, people: People
) -> PersonAnswer:
    """Subscribes or unsubscribes a person on one channel; nothing happens if it is so already.

    Subscribe only people who agreed to it. People who blocked a bot can only come back by themselves.
    """
    person = await people.set_consent(
        ctx.tx, ctx.project_id, body.external_id, body.channel, body.consent
    )
    return PersonAnswer.of(person)


@router.post(
    "/v1/people/merge",
    audited=lambda _: _("People merged"),
    errors=(Conflict, InvalidExternalId, SubscriberNotFound),
)
async def merge_people(ctx: Context, body: MergePeopleBody, people: People) -> PersonAnswer:
    """Merges two people: all subscribers with `external_id` get the id `into`.

    One-time codes and sign-ins in progress go on, and open personal links lead to the id that stays. People
    who both have an account on a channel are refused, because a person has one per channel.
    """
    person = await people.merge(ctx.tx, ctx.project_id, body.external_id, body.into)
    return PersonAnswer.of(person)


@router.post(
    "/v1/people/split",
    audited=lambda _: _("Subscriber taken out of a person"),
    errors=(Conflict, SubscriberNotFound),
)
async def split_person(ctx: Context, body: SplitPersonBody, people: People) -> SubscriberAnswer:
    """Takes a subscriber out of a person: they keep everything but the `external_id`."""
    return SubscriberAnswer.of(await people.split(ctx.tx, ctx.project_id, body.subscriber_id))
