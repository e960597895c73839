"""The rules of forms."""

import pytest

from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import Conflict, NotFound, SubscriberNotFound, ValidationFailed
from msgsvc_devkit.core import PROJECT, MemoryCore
from msgsvc_forms.service import EMPTY_SPAM, Forms
from plugins.areas.forms.tests.unit.order import add_form, new_form

WEBHOOK = {"to": {"kind": "webhook"}}


async def test_a_link_says_the_slug_unless_another_project_had_it_first(
    core: MemoryCore, tx: Tx
) -> None:
    forms, other = core.get(Forms), await core.project(tx, "prj_2")
    first = await forms.create(tx, PROJECT, new_form())
    second = await forms.create(tx, other, new_form())

    assert first.payload == "form_order"
    assert second.payload.startswith("form_order_")
    assert len(second.payload) == len("form_order_") + 8


@pytest.mark.parametrize("core", [{"forms_per_project": 1}], indirect=True)
async def test_a_project_has_so_many_forms(core: MemoryCore, tx: Tx) -> None:
    await core.get(Forms).create(tx, PROJECT, new_form())

    with pytest.raises(Conflict, match="at most 1 forms"):
        await core.get(Forms).create(tx, PROJECT, new_form(slug="other"))


@pytest.mark.parametrize("core", [{"rules_per_form": 1}], indirect=True)
async def test_a_form_has_so_many_rules(core: MemoryCore, tx: Tx) -> None:
    with pytest.raises(ValidationFailed, match="rules: at most 1"):
        await core.get(Forms).create(tx, PROJECT, new_form(rules=[WEBHOOK, WEBHOOK]))


async def test_rules_that_lead_nowhere_are_named_before_anything_is_kept(
    core: MemoryCore, tx: Tx
) -> None:
    nobody = {"to": {"kind": "subscriber", "subscriber_id": "sub_unknown"}}
    with pytest.raises(SubscriberNotFound) as refused:
        await core.get(Forms).create(tx, PROJECT, new_form(rules=[WEBHOOK, nobody]))

    assert "rules[1].to" in str(refused.value.findings)
    assert await core.get(Forms).page(tx, PROJECT, None, 10) == []


async def test_spam_is_emptied_as_of_now(core: MemoryCore, tx: Tx) -> None:
    form = await add_form(tx)
    await core.get(Forms).empty_spam(tx, PROJECT, form.form_id)
    with pytest.raises(NotFound):
        await core.get(Forms).empty_spam(tx, PROJECT, "frm_unknown")

    [job] = await core.jobs_named(tx, EMPTY_SPAM)
    assert job.payload["until_ms"] == core.clock.now_ms()
