"""Checks of channels that use a webhook."""

from dataclasses import replace

import pytest

from msgsvc_core.channels import Channel, InvalidWebhook, Started, Unreadable, Update, WebhookCall
from msgsvc_devkit.conformance.inbox import OTHER_SECRET, SECRET, Inbox
from msgsvc_devkit.conformance.messenger import Messenger
from msgsvc_devkit.conformance.stage import Stage, needs
from msgsvc_devkit.conformance.verdicts import done

#: Bodies that are not an update of any platform.
GARBAGE = (
    b"",
    b"{",
    b"null",
    b"[]",
    b"0",
    b'"text"',
    b"{}",
    b'{"update_id": "x", "message": []}',
    b'{"update_id": 1e400, "message": {"chat": null}}',
    b'{"update_type": "message_created", "message": 7}',
    b"\xff\xfe\x00",
    b"[" * 5000,
    b'{"a":' * 3000 + b"1" + b"}" * 3000,
    "\ud83d".encode("utf-16", "surrogatepass"),
)


class Webhooks(Stage):
    """`set_webhook`, `check_webhook` and `parse_update`."""

    async def test_webhook_call_with_the_secret_brings_its_update(
        self, channel: Channel, messenger: Messenger, inbox: Inbox
    ) -> None:
        call = await _call(channel, messenger, inbox)

        updates = _parsed(channel, call)
        assert [type(one) for one in updates] == [Started], (
            f"the person pressed Start, and `parse_update` gave {updates}"
        )

    async def test_webhook_call_twice_has_the_same_update_id(
        self, channel: Channel, messenger: Messenger, inbox: Inbox
    ) -> None:
        call = await _call(channel, messenger, inbox)
        ids = {one.update_id for _ in range(2) for one in _parsed(channel, call)}

        assert len(ids) == 1, (
            f"the same call gave update_ids {ids}; make them of what the platform sends, so that what"
            " it sends again has no second effect"
        )

    async def test_webhook_call_with_a_secret_of_before_is_taken(
        self, channel: Channel, messenger: Messenger, inbox: Inbox
    ) -> None:
        call = await _call(channel, messenger, inbox)
        older = replace(call, secrets=(OTHER_SECRET, SECRET))

        assert _parsed(channel, older), "a call with the second of `secrets` gave no update"

    @pytest.mark.parametrize("what", ["another secret", "no header", "no secret known", "a prefix"])
    async def test_webhook_call_that_does_not_prove_itself_is_refused(
        self, channel: Channel, messenger: Messenger, inbox: Inbox, what: str
    ) -> None:
        needs(messenger.proof == "secret", "secret of its own for the webhook (Messenger.proof)")
        call = await _call(channel, messenger, inbox)
        unproven = {
            "another secret": replace(call, secrets=(OTHER_SECRET,)),
            "no header": replace(call, headers={}),
            "no secret known": replace(call, secrets=()),
            "a prefix": replace(call, secrets=(SECRET + "00", SECRET[:-1])),
        }[what]
        try:
            updates = channel.parse_update(unproven)
        except InvalidWebhook:
            return
        except Exception as error:  # noqa: BLE001 - whatever a channel raises is a finding
            pytest.fail(f"`parse_update` raised {error!r} ({what}); raise InvalidWebhook")
        pytest.fail(
            f"`parse_update` took a call that is not proven to be the platform's ({what}) and gave"
            f" {updates}; ask call.has_secret(...) first, and raise InvalidWebhook"
        )

    @pytest.mark.parametrize("what", ["another body", "no header", "a prefix", "another signature"])
    async def test_webhook_call_that_is_not_signed_is_refused(
        self, channel: Channel, messenger: Messenger, inbox: Inbox, what: str
    ) -> None:
        needs(messenger.proof == "signature", "signature of webhook calls (Messenger.proof)")
        call = await _call(channel, messenger, inbox)
        other = messenger.signed(replace(call, body=call.body + b" "))
        changed = [name for name, value in call.headers.items() if other.headers[name] != value]
        assert changed, "`Messenger.signed` gave two bodies the same headers"
        unproven = {
            "another body": replace(call, body=call.body + b" "),
            "no header": replace(call, headers={}),
            "a prefix": replace(
                call,
                headers={**call.headers, **{name: call.headers[name][:-1] for name in changed}},
            ),
            "another signature": replace(call, headers=other.headers),
        }[what]
        try:
            updates = channel.parse_update(unproven)
        except InvalidWebhook:
            return
        except Exception as error:  # noqa: BLE001 - whatever a channel raises is a finding
            pytest.fail(f"`parse_update` raised {error!r} ({what}); raise InvalidWebhook")
        pytest.fail(
            f"`parse_update` took a call that the platform has not signed ({what}) and gave {updates}; verify"
            " the signature of call.body first, in constant time, and raise InvalidWebhook"
        )

    async def test_webhook_secret_is_replaced_by_setting_it_again(
        self, channel: Channel, messenger: Messenger, inbox: Inbox
    ) -> None:
        await _call(channel, messenger, inbox)
        again = channel.set_webhook(inbox.webhook_url, OTHER_SECRET)
        await done(again, "set_webhook with another secret")
        await messenger.write("again")
        call = replace(await inbox.webhook_call(), secrets=(OTHER_SECRET,))

        assert _parsed(channel, call), "a call with the new secret gave no update"

    async def test_webhook_that_was_set_is_found_well(
        self, channel: Channel, messenger: Messenger, inbox: Inbox
    ) -> None:
        await _call(channel, messenger, inbox)
        found = await done(channel.check_webhook(inbox.webhook_url), "check_webhook")

        assert found.ok, (
            f"the platform calls the webhook, and `check_webhook` says {found}; where the platform tells"
            " nothing of its calls, say ok"
        )

    async def test_webhook_call_that_holds_no_update_gives_none(
        self, channel: Channel, messenger: Messenger, inbox: Inbox
    ) -> None:
        call = await _call(channel, messenger, inbox)
        for body in GARBAGE:
            changed = replace(call, body=body)
            if messenger.proof == "signature":
                changed = messenger.signed(changed)
            updates = [
                each for each in _parsed(channel, changed) if not isinstance(each, Unreadable)
            ]
            assert updates == [], f"the body {body[:40]!r} gave {updates}"


async def _call(channel: Channel, messenger: Messenger, inbox: Inbox) -> WebhookCall:
    """The platform's webhook call after the user pressed Start."""
    needs(channel.receiving == "webhook", "webhooks (receiving)")
    await messenger.start("called")
    return await inbox.webhook_call()


def _parsed(channel: Channel, call: WebhookCall) -> list[Update]:
    try:
        return channel.parse_update(call)
    except InvalidWebhook as error:
        pytest.fail(
            f"`parse_update` refused a call that holds the secret: {error}. Take any of call.secrets"
        )
    except Exception as error:  # noqa: BLE001 - whatever a channel raises is a finding
        pytest.fail(
            f"`parse_update` raised {error!r} for the body {call.body[:40]!r}; return an Unreadable in place"
            " of what can't be read: one update must not stop the bot"
        )
