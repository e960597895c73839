"""Checks of channels with mini apps."""

import pytest

from msgsvc_core.channels import Channel, InvalidMiniApp, MiniAppUser
from msgsvc_devkit.conformance.messenger import Messenger
from msgsvc_devkit.conformance.stage import Stage, needs

#: Data not signed by any platform.
GARBAGE = (
    "",
    "&",
    "=",
    "hash",
    "hash=",
    "hash=00&auth_date=1&user={}",
    "hash=zz&hash=yy",
    "auth_date=1",
    "%00%ff=%",
    "user=" + "x" * 10_000 + "&hash=" + "0" * 64,
    "😀=😀&hash=😀",
    "{}",
    "null",
)


class MiniApps(Stage):
    """`verify_mini_app`."""

    async def test_mini_app_says_who_opened_it(
        self, channel: Channel, messenger: Messenger
    ) -> None:
        needs(channel.capabilities.mini_app, "mini apps")
        data = await messenger.mini_app_data("from_here")
        try:
            found: MiniAppUser = channel.verify_mini_app(data)
        except Exception as error:  # noqa: BLE001 - whatever a channel raises is a finding
            pytest.fail(f"`verify_mini_app` raised {error!r} for what the platform signed")

        assert found.user.user_id == messenger.user.user_id, f"{found.user} is not {messenger.user}"
        assert found.start_payload == "from_here", f"start_payload is {found.start_payload!r}"
        assert found.signed_at_ms > 10**12, (
            f"signed_at_ms is {found.signed_at_ms}: Unix time in milliseconds"
        )

    async def test_mini_app_data_that_was_changed_is_refused(
        self, channel: Channel, messenger: Messenger
    ) -> None:
        needs(channel.capabilities.mini_app, "mini apps")
        data, user_id = await messenger.mini_app_data("from_here"), messenger.user.user_id
        assert user_id in data, f"Messenger.mini_app_data does not hold the user_id {user_id!r}"
        other = user_id[:-1] + ("1" if user_id[-1] != "1" else "2")
        forgeries = [
            data.replace(user_id, other),
            data.replace("from_here", "from_there"),
            data + "&admin=1",
            data[:-1],
        ]

        for forged in forgeries:
            _refused(channel, forged, "was changed after the platform had signed it")

    async def test_mini_app_data_of_another_bot_is_refused(
        self, channel: Channel, messenger: Messenger
    ) -> None:
        needs(channel.capabilities.mini_app, "mini apps")

        _refused(channel, await messenger.mini_app_data(of_other_bot=True), "is another bot's")

    def test_mini_app_data_that_is_none_is_refused(self, channel: Channel) -> None:
        for data in GARBAGE:
            _refused(channel, data, f"is {data[:40]!r}")


def _refused(channel: Channel, data: str, what: str) -> None:
    try:
        found = channel.verify_mini_app(data)
    except InvalidMiniApp:
        return
    except Exception as error:  # noqa: BLE001 - whatever a channel raises is a finding
        pytest.fail(
            f"`verify_mini_app` raised {error!r} for data that {what}; raise InvalidMiniApp"
        )
    pytest.fail(f"`verify_mini_app` took data that {what}, and found {found}: anybody can sign in")
