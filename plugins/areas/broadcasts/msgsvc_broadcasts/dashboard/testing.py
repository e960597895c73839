"""Sending a draft to one subscriber before it is sent to all: who, and the test itself."""

from typing import Any

from msgsvc_broadcasts.drafts import DraftTests
from msgsvc_core.dashboard import PageContext, PostedForm
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.mailings import MailingMessage
from msgsvc_core.messages.models import Message


async def testers_of(page: PageContext, drafts: DraftTests, form: PostedForm) -> dict[str, Any]:
    """Who may get a test, for `testers.html`: one chosen in the form, else who got the member's last one, or
    their own messenger accounts."""
    own = page.member.subscriber_ids if page.member is not None else ()
    chosen = form.text("test_to")
    known = await drafts.testers(
        page.tx, page.project_id, viewer_of(page), [*([chosen] if chosen else []), *own]
    )
    ids = [each.subscriber_id for each in known]
    return {"testers": known, "tester": chosen if chosen in ids else next(iter(ids), "")}


async def send(page: PageContext, drafts: DraftTests, draft: MailingMessage) -> Message:
    """Sends the draft to who is chosen in the form, and remembers them. Raises what `DraftTests.send` does,
    and `ValidationFailed` if nobody is chosen."""
    to = page.form.text("test_to")
    if not to:
        raise ValidationFailed("choose who gets the test", field="test_to")
    message = await drafts.send(page.tx, page.project_id, draft, to)
    await drafts.remember(page.tx, page.project_id, viewer_of(page), to)
    page.note(message=message.message_id, subscriber=to)
    return message


def viewer_of(page: PageContext) -> str:
    """Whose choice is remembered: the member's, or that of the account of an owner who is none."""
    return page.viewer.account_id if page.member is None else page.member.member_id
