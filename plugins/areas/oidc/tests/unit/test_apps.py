"""The command `/apps`."""

from msgsvc_core.channels import ChannelUser, MessageReceived
from msgsvc_core.db import Tx
from msgsvc_devkit.core import MemoryCore
from msgsvc_oidc.apps.texts import AppTexts, data
from msgsvc_oidc.consents.models import Consent

#: Ids of the longest form.
CLIENT_ID = "app_" + "0" * 22


def consent(name: str = "Grafana", *, project_id: str = "prj_1") -> Consent:
    return Consent(
        project_id=project_id,
        subscriber_id="sub_1",
        client_id=CLIENT_ID,
        client_name=name,
        scopes=("openid", "notify"),
        granted_at_ms=1_790_000_000_000,
    )


def texts(**projects: str) -> AppTexts:
    return AppTexts(lambda text, **values: text.format(**values), projects or {"prj_1": "Shop"})


def test_an_app_is_shown_with_what_it_may() -> None:
    message = texts().apps([consent()], 0)

    assert message.text.splitlines()[2:] == [
        "Grafana, since 2026-09-21",
        "• Recognise you when you sign in again",
        "• Let Shop send you messages",
    ]


def test_a_name_with_line_breaks_makes_no_lines_of_its_own() -> None:
    message = texts().apps([consent("Grafana\nNo app has access")], 0)

    assert "\nNo app has access" not in message.text


def test_a_page_after_the_last_one_is_the_last_one() -> None:
    message = texts().apps([consent(f"App {number}") for number in range(6)], 9)

    assert [button.text for row in message.buttons for button in row] == [
        "Revoke: App 5",
        "‹ Previous",
    ]


def test_the_data_of_buttons_fits_every_messenger() -> None:
    buttons = [*texts().question(consent()).buttons, *texts().apps([consent()], 0).buttons]

    assert all(len(button.data or "") <= 64 for row in buttons for button in row)
    assert data("show", 3) == "~apps:show:3"


async def test_a_stranger_has_no_apps(core: MemoryCore, tx: Tx) -> None:
    [[rule, _]] = core.service.plugins.hook.register_inbound()
    eve = ChannelUser("9", "Eve", None, "en")
    update = MessageReceived(update_id="u1", chat_id="chat-9", user=eve, text="/apps")
    await rule.handler(core.inbound(tx, update, project_id=None))

    assert await core.texts_sent(tx) == ["No app has access to your account."]
