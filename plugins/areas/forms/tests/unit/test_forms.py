"""The rules of forms, built from fakes."""

from dataclasses import asdict
from typing import Any

import pytest

from msgsvc_core.kernel.errors import Conflict, NotFound, SubscriberNotFound, ValidationFailed
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeTx
from msgsvc_forms.models import CreateFormBody, UpdateFormBody
from msgsvc_forms.service import EMPTY_SPAM, REMOVE

from .order import FIELDS, FORM, form_of, forms, tables, tx_of


@pytest.fixture
def core() -> FakeContext:
    return plugin_context()


def new(**fields: Any) -> CreateFormBody:
    return CreateFormBody.model_validate(
        {"slug": "order", "title": "Order", "fields": FIELDS, **fields}
    )


def unheard() -> dict[str, Any]:
    """Tables of a project without forms, in which another project's may have the link."""
    return {"SELECT COUNT(*)": [{"count": 0}], "SELECT 1 FROM forms_forms": []}


async def test_a_link_says_the_slug_unless_another_project_had_it_first(core: FakeContext) -> None:
    first = await forms(core).create(tx_of(None), PROJECT, new())
    second = await forms(core).create(tx_of(FORM, others=unheard()), PROJECT, new())

    assert first.payload == "form_order"
    assert second.payload.startswith("form_order_")
    assert len(second.payload) == len("form_order_") + 8


async def test_a_project_has_so_many_forms_and_each_slug_once(core: FakeContext) -> None:
    with pytest.raises(Conflict, match="at most 1 forms"):
        await forms(core, forms_per_project=1).create(tx_of(FORM), PROJECT, new())
    with pytest.raises(Conflict, match="has a form 'order'"):
        await forms(core).create(tx_of(FORM), PROJECT, new())


async def test_routes_that_lead_nowhere_are_named_before_anything_is_kept(
    core: FakeContext,
) -> None:
    tx = tx_of(None)
    webhook = {"to": {"kind": "webhook"}}
    nobody = {"to": {"kind": "subscriber", "subscriber_id": "sub_unknown"}}
    with pytest.raises(SubscriberNotFound) as refused:
        await forms(core).create(tx, PROJECT, new(routes=[webhook, nobody]))
    with pytest.raises(ValidationFailed, match="routes: at most 1"):
        await forms(core, routes_per_form=1).create(tx, PROJECT, new(routes=[webhook, webhook]))

    assert "routes[1].to" in str(refused.value.findings)
    assert dict(tx.rows) == {}


async def test_a_change_is_a_new_version_and_no_change_is_none(core: FakeContext) -> None:
    tx = tx_of()
    same = await forms(core).update(tx, PROJECT, "frm_1", UpdateFormBody(title="Order"))
    changed = await forms(core).update(tx, PROJECT, "frm_1", UpdateFormBody(title="Buy"))

    assert (same.version, changed.version) == (1, 2)
    assert [row["version"] for row in tx.rows["forms_versions"]] == [2]
    assert [params["version"] for params in tx.params_of("UPDATE forms_forms")] == [2]


async def test_a_form_of_a_disabled_project_has_no_public_address(core: FakeContext) -> None:
    assert await forms(core).get_public(tx_of(), "frm_1") == FORM
    await core.projects.set_active(PROJECT, False)

    with pytest.raises(NotFound):
        await forms(core).get_public(tx_of(), "frm_1")


async def test_what_was_sent_in_with_a_deleted_form_goes_by_a_job(core: FakeContext) -> None:
    await forms(core).delete(tx_of(), PROJECT, "frm_1")
    with pytest.raises(NotFound):
        await forms(core).delete(tx_of(None), PROJECT, "frm_2")

    assert [job.payload["form_id"] for job in core.jobs.named(REMOVE)] == ["frm_1"]


async def test_spam_is_emptied_as_of_now(core: FakeContext) -> None:
    await forms(core).empty_spam(tx_of(), PROJECT, "frm_1")
    with pytest.raises(NotFound):
        await forms(core).empty_spam(tx_of(None), PROJECT, "frm_2")

    [job] = core.jobs.named(EMPTY_SPAM)
    assert job.payload["until_ms"] == core.clock.now_ms()


async def test_questions_that_are_asked_no_more_are_named_after_those_that_are(
    core: FakeContext,
) -> None:
    gone = {"key": "fax", "type": "text", "label": "Fax?"}
    versions = [form_of(2), form_of(1, fields=[gone, FIELDS[0]])]
    replies = {"FROM forms_forms f": [asdict(each) for each in versions]}

    assert await forms(core).all_keys(FakeTx(replies=replies | tables()), FORM) == [
        "name",
        "count",
        "fax",
    ]
