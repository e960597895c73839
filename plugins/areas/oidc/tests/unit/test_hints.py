"""Hints of a client, without a database."""

from dataclasses import replace

import pytest

from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.plugins.sign_ins import PageSignIn
from msgsvc_devkit import plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeSignIns, FakeTx
from msgsvc_oidc import plugin
from msgsvc_oidc.authorization.hints import ExpectedPeople
from msgsvc_oidc.authorization.sign_in_pages import SignInPages
from msgsvc_oidc.protocol.authorize import next_step
from msgsvc_oidc.protocol.clients import Client
from msgsvc_oidc.protocol.errors import RedirectError
from msgsvc_oidc.settings import OidcSettings
from plugins.areas.oidc.tests.unit.test_parts import PENDING, REQUEST, SESSION, Parts

CLIENT = Client(
    project_id=PROJECT, client_id="app_1", name="Grafana", first_party=True, created_at_ms=0
)


@pytest.fixture
def parts() -> Parts:
    return Parts(plugin_context(plugin=plugin, settings=[OidcSettings()]))


def test_another_person_signs_in_and_then_it_has_to_be_the_expected_one() -> None:
    expecting = replace(REQUEST, expected_subscriber_id="sub_2")

    assert next_step(REQUEST, CLIENT, SESSION, (), now_ms=0) == "issue"
    assert next_step(expecting, CLIENT, SESSION, (), now_ms=0) == "sign_in"
    with pytest.raises(RedirectError, match="another person"):
        next_step(expecting, CLIENT, SESSION, (), now_ms=0, signed_in=True)


async def test_without_a_hint_anybody_is_expected(parts: Parts) -> None:
    expected = ExpectedPeople(
        db=parts.core.db, issuers=parts.issuers, keys=parts.keys, grants=parts.grants
    )

    assert await expected.resolve(CLIENT, REQUEST, None) is REQUEST


async def test_a_token_that_is_none_of_ours_is_refused(parts: Parts) -> None:
    parts.core.db.replies["FROM oidc_keys"] = []

    with pytest.raises(RedirectError, match="id_token_hint"):
        await parts.expected.resolve(CLIENT, REQUEST, "x")


class OneMessenger(FakeSignIns):
    """Refuses every hint at a messenger."""

    async def open_page(self, tx: FakeTx, request: PageSignIn) -> str:
        if request.channel is not None:
            raise ValidationFailed("people can't answer a bot on {name}", name=request.channel)
        return await super().open_page(tx, request)


async def test_a_messenger_that_can_sign_nobody_in_is_ignored(parts: Parts) -> None:
    sign_ins = OneMessenger()
    pages = SignInPages(issuers=parts.issuers, sign_ins=sign_ins, channels=parts.core.channels)
    hinted = replace(PENDING, request=replace(REQUEST, login_hint="messenger_a"))

    await pages.open(FakeTx(), CLIENT, hinted)

    [started] = sign_ins.started.values()
    assert started.request.channel is None
