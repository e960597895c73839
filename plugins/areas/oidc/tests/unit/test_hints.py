"""Hints of a client about who signs in, and where."""

from dataclasses import replace

import pytest

from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.plugins.sign_ins import PageSignIn
from msgsvc_devkit import FakeClock
from msgsvc_devkit.core import MemoryCore
from msgsvc_oidc.composition.records import Records
from msgsvc_oidc.protocol.authorize import next_step
from msgsvc_oidc.protocol.errors import RedirectError
from plugins.areas.oidc.tests.sign_ins import ScriptedSignIns
from plugins.areas.oidc.tests.unit.provider import (
    CLIENT,
    PENDING,
    REQUEST,
    SESSION,
    sign_in_pages,
)

OURS = replace(CLIENT, first_party=True)


def test_another_person_signs_in_and_then_it_has_to_be_the_expected_one() -> None:
    expecting = replace(REQUEST, expected_subscriber_id="sub_2")

    assert next_step(REQUEST, OURS, SESSION, (), now_ms=0) == "issue"
    assert next_step(expecting, OURS, SESSION, (), now_ms=0) == "sign_in"
    with pytest.raises(RedirectError, match="another person"):
        next_step(expecting, OURS, SESSION, (), now_ms=0, signed_in=True)


class OneMessenger(ScriptedSignIns):
    """Refuses every hint at a messenger."""

    async def open_page(self, tx: Tx, request: PageSignIn) -> str:
        if request.channel is not None:
            raise ValidationFailed("people can't answer a bot on {name}", name=request.channel)
        return await super().open_page(tx, request)


@pytest.fixture
def sign_ins(clock: FakeClock) -> ScriptedSignIns:
    return OneMessenger(clock)


async def test_a_messenger_that_can_sign_nobody_in_is_ignored(
    core: MemoryCore, tx: Tx, records: Records, sign_ins: ScriptedSignIns
) -> None:
    hinted = replace(PENDING, request=replace(REQUEST, login_hint="messenger_a"))
    await sign_in_pages(core, records).open(tx, CLIENT, hinted)

    assert isinstance(sign_ins.latest.request, PageSignIn)
    assert sign_ins.latest.request.channel is None
