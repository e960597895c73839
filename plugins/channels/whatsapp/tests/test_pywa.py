"""pywa, a client that others wrote for the platform, works with the fake."""

import pytest
from pywa import errors
from pywa.types import Button, Section, SectionList, SectionRow, URLButton
from pywa.types.templates import BodyText, TemplateLanguage
from pywa_async import WhatsApp, types

from msgsvc_core.kernel.json import to_json_bytes
from msgsvc_devkit.platforms.whatsapp import FakeWhatsApp, Refused

from .conftest import PNG


@pytest.fixture
async def wa(platform: FakeWhatsApp):
    client = WhatsApp(
        phone_id=platform.phone_number_id,
        token=platform.token,
        verify_token="mine",
        app_secret=platform.app_secret,
        server=None,
    )
    # It always calls graph.facebook.com.
    client.api._session.base_url = f"{platform.url}/v25.0"
    yield client
    await client.api._session.aclose()


async def test_it_sends_texts_buttons_lists_and_links(wa, ann):
    sent = await wa.send_message(to=ann.user_id, text="*Hello*")
    await wa.send_message(ann.user_id, "Sure?", buttons=[Button("Yes", "y"), Button("No", "n")])
    rows = [SectionRow("One", "1", "The first"), SectionRow("Two", "2")]
    await wa.send_message(
        ann.user_id, "Which?", buttons=SectionList("Open", [Section("All", rows)])
    )
    await wa.send_message(ann.number, "Site", buttons=URLButton("Open", "https://shop.example"))

    assert sent.id == ann.messages[0].ref
    assert [one.kind for one in ann.messages] == ["text", "button", "list", "cta_url"]
    assert ann.messages[0].looks == (("bold", "Hello"),)


async def test_it_sends_files_and_templates(wa, platform, ann):
    await wa.send_image(ann.user_id, PNG, caption="A cat", mime_type="image/png")
    await wa.send_template(
        ann.user_id, "notice", TemplateLanguage.ENGLISH, [BodyText.params("it is here")]
    )

    assert [(one.media, one.template) for one in ann.messages] == [
        ("image", None),
        (None, "notice"),
    ]


async def test_it_knows_the_errors(wa, platform, ann):
    platform.refuses_at_once = True
    platform.pass_time(25)
    with pytest.raises(errors.ReEngagementMessage):
        await wa.send_message(ann.user_id, "Hello")
    platform.faults.fail_next(Refused(400, 131056, "Pair rate limit hit"))
    with pytest.raises(errors.TooManyMessages):
        await wa.send_message(ann.user_id, "Hello")


async def test_it_reads_the_number(wa, platform):
    number = await wa.get_business_phone_number()

    assert number.display_phone_number == platform.display_phone_number
    assert number.verified_name == "Fake Shop"


async def test_it_verifies_and_reads_the_webhook_calls(wa, platform, ann):
    seen = []

    @wa.on_message
    async def on_message(_: WhatsApp, message: types.Message) -> None:
        seen.append((message.from_user.bsuid, message.from_user.wa_id, message.text))

    @wa.on_callback_button
    async def on_press(_: WhatsApp, press: types.CallbackButton) -> None:
        seen.append((press.from_user.bsuid, press.data, press.title))

    @wa.on_message_status
    async def on_status(_: WhatsApp, status: types.MessageStatus) -> None:
        seen.append((status.status.value, status.error and status.error.error_code))

    await wa.send_message(ann.user_id, "Sure?", buttons=[Button("Yes", "y")])
    await ann.press("Yes")
    for body in platform.webhooks.all:
        raw = to_json_bytes(body)
        signature = platform.webhooks.signature(raw)
        assert await wa.webhook_update_validator(raw, signature) is None
        assert await wa.webhook_update_validator(raw + b" ", signature) is not None
        await wa.webhook_update_handler(raw)

    assert seen[0] == (ann.user_id, ann.number, "Hello")
    assert seen[-1] == (ann.user_id, "y", "Yes")
    assert [one[0] for one in seen[1:-1]] == ["sent", "delivered"]
