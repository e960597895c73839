"""A person who is chosen on a page: by a search, or by their id (`ui.person` of its templates)."""

from msgsvc_core.api.validation import validate
from msgsvc_core.dashboard.context import PageContext
from msgsvc_core.dashboard.posted import PostedForm
from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.subscribers.models import Subscriber, SubscriberQuery
from msgsvc_core.subscribers.service import Subscribers

#: People that a search offers; who is not among them needs more letters.
MOST_FOUND = 10


async def search_people(page: PageContext, subscribers: Subscribers, text: str) -> list[Subscriber]:
    """Up to ten subscribers whose name, username or external id begins with the text, or whose id it is."""
    who = text.strip()
    if not who:
        return []
    if who.startswith("sub_"):
        found = await subscribers.get_many(page.tx, [(page.project_id, who)])
        return list(found.values())
    try:
        query = validate(SubscriberQuery, {"query": who, "limit": MOST_FOUND})
    except ApiError:
        # Longer than any name.
        return []
    return (await subscribers.page(page.tx, page.project_id, query))[:MOST_FOUND]


def chosen_person(form: PostedForm, name: str) -> dict[str, str]:
    """The `subscriber_id` or the `external_id` of who is chosen in the field: of those found for what it
    says, or what it says itself."""
    typed = form.text(name).strip()
    chosen = form.text(f"{name}-chosen")
    # What was found for another text is not who is meant.
    who = chosen if chosen and form.text(f"{name}-searched").strip() == typed else typed
    return {"subscriber_id" if who.startswith("sub_") else "external_id": who}
