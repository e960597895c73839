"""What was sent in, as lists and files, and when it is forgotten."""

import csv
import io
from collections.abc import AsyncIterator
from typing import Any

import pytest

from msgsvc_core.kernel.errors import NotFound
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled, until
from msgsvc_forms import jobs
from msgsvc_forms.models import NewSubmission
from msgsvc_forms.service import Forms
from msgsvc_forms.submissions import Submissions

from .conftest import NAME, WITH_FORMS, Desk, refusal
from .web import PNG, Visitor, visiting

DAY_S = 24 * 3600
AGE = {"key": "age", "type": "number", "label": "Age"}
PHOTO = {"key": "photo", "type": "file", "label": "Photo"}


@pytest.fixture
async def visitor(service: Service) -> AsyncIterator[Visitor]:
    async with visiting(service) as opened:
        yield opened


async def put(desk: Desk, form: dict[str, Any], who: str | None = None, **answers: Any) -> str:
    """Keeps a submission of the messenger, or of the web where nobody is named; returns its id."""
    forms, submissions = desk.service.get(Forms), desk.service.get(Submissions)
    async with desk.service.db.transaction() as tx:
        subscriber = (
            None if who is None else await desk.service.subscribers.get(tx, desk.project_id, who)
        )
        kept = await submissions.submit(
            tx,
            NewSubmission(
                await forms.get(tx, desk.project_id, form["form_id"]),
                "web" if who is None else "messenger",
                answers,
                "en",
                subscriber=subscriber,
            ),
        )
    return kept.submission_id


async def test_what_is_sent_in_while_its_form_is_deleted_is_told_so(desk: Desk) -> None:
    form = await desk.form()
    forms = desk.service.get(Forms)
    async with desk.service.db.read() as tx:
        shown = await forms.get(tx, desk.project_id, form["form_id"])

    await desk.client.delete(f"/v1/forms/{form['form_id']}")

    with pytest.raises(NotFound):
        async with desk.service.db.transaction() as tx:
            await desk.service.get(Submissions).submit(
                tx, NewSubmission(shown, "web", {"name": "Ann"}, "en")
            )


@pytest.mark.both_databases
async def test_lists_go_by_cursor_and_filters(desk: Desk) -> None:
    form = await desk.form()
    ann = await desk.person("Ann")
    ids = [await put(desk, form, ann if n % 2 else None, name=f"P{n}") for n in range(5)]
    path = f"/v1/forms/{form['form_id']}/submissions"

    first = (await desk.client.get(f"{path}?limit=3")).json()
    second = (await desk.client.get(path, params={"cursor": first["next_cursor"]})).json()
    from_bot = await desk.submissions(form, source="messenger")

    listed = [one["submission_id"] for one in [*first["data"], *second["data"]]]
    assert listed == ids[::-1]
    assert second["next_cursor"] is None
    assert [one["submission_id"] for one in from_bot] == [ids[3], ids[1]]
    assert from_bot[0]["subscriber_id"] == ann
    one = (await desk.client.get(f"{path}/{ids[0]}")).json()
    assert one == second["data"][-1]
    assert refusal(await desk.client.get(f"{path}?cursor=!")) == (400, "bad_request")


@pytest.mark.both_databases
async def test_the_file_for_spreadsheets_has_a_column_for_every_question_ever_asked(
    desk: Desk, visitor: Visitor
) -> None:
    form = await desk.form(NAME, AGE)
    await put(desk, form, name='=cmd|"/c calc"!A1', age=5)
    await desk.change(form, fields=[NAME, PHOTO])
    files = {"photo": ("@a.png", PNG, "image/png")}
    await visitor.post(form, data={"name": "Имя, «x»"}, files=files)
    await visitor.post(form, json={"name": "Bot", form["honeypot"]: "x"})
    path = f"/v1/forms/{form['form_id']}/submissions/export"

    answer = await desk.client.get(path)
    spam = await desk.client.get(f"{path}?spam=true")

    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert "attachment" in answer.headers["Content-Disposition"]
    assert answer.text.startswith("\ufeff")
    head, new, old = csv.reader(io.StringIO(answer.text.removeprefix("\ufeff"), newline=""))
    assert head[6:] == ["name", "photo", "age"]
    assert (new[2], new[3], new[6], new[8]) == ("2", "web", "Имя, «x»", "")
    assert new[7].startswith("fil_")
    assert new[7].endswith("@a.png")
    assert (old[2], old[6], old[8]) == ("1", '\'=cmd|"/c calc"!A1', "5")
    assert spam.text.count("honeypot") == 1
    missing = await desk.client.get("/v1/forms/frm_x/submissions/export")
    assert refusal(missing) == (404, "not_found")


@pytest.mark.both_databases
async def test_who_is_erased_takes_their_answers_along(desk: Desk) -> None:
    form = await desk.form()
    ann, bob = await desk.person("Ann"), await desk.person("Bob")
    await put(desk, form, ann, name="Ann Secret")
    kept = await put(desk, form, bob, name="Bob")

    await desk.client.delete(f"/v1/subscribers/{ann}?erase=true")
    await settled(desk.service)

    assert [one["submission_id"] for one in await desk.submissions(form)] == [kept]
    assert "Ann Secret" not in str(await desk.told())


async def test_a_form_that_is_removed_takes_what_was_sent_in_along(
    desk: Desk, visitor: Visitor
) -> None:
    form = await desk.form(NAME, PHOTO)
    files = {"photo": ("a.png", PNG, "image/png")}
    await visitor.post(form, data={"name": "Ann"}, files=files)
    [kept] = await desk.submissions(form)
    [file] = kept["answers"][1]["value"]

    assert (await desk.client.delete(f"/v1/forms/{form['form_id']}")).status_code == 204
    await settled(desk.service)

    gone = await desk.client.get(f"/v1/forms/{form['form_id']}/submissions")
    assert refusal(gone) == (404, "not_found")
    assert (await desk.client.get(f"/v1/files/{file['file_id']}")).status_code == 404


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_a_form_with_much_is_removed_a_part_at_a_time_and_out_of_sight_at_once(
    desk: Desk, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "CHUNK", 2)
    removed: list[bool] = []
    remove_deleted = Submissions.remove_deleted

    async def seen(*args: Any) -> bool:
        removed.append(await remove_deleted(*args))
        return removed[-1]

    monkeypatch.setattr(Submissions, "remove_deleted", seen)
    form, other = await desk.form(NAME, PHOTO), await desk.form(slug="other")
    files = [("photo", ("a.png", PNG, "image/png"))]
    for n in range(4):
        sent = await visitor.post(form, data={"name": f"P{n}"}, files=files)
        assert sent.is_success, sent.text
    await visitor.post(form, json={"name": "Bot", form["honeypot"]: "x"})
    await put(desk, other, name="Ann")

    await desk.client.delete(f"/v1/forms/{form['form_id']}")

    assert refusal(await desk.client.delete(f"/v1/forms/{form['form_id']}")) == (404, "not_found")
    assert refusal(await visitor.post(form, json={"name": "Late"})) == (404, "not_found")
    listed = (await desk.client.get("/v1/forms")).json()["data"]
    assert [one["form_id"] for one in listed] == [other["form_id"]]
    again = await desk.form(slug=form["slug"])
    assert again["form_id"] != form["form_id"]
    await settled(desk.service)
    assert removed == [False, False, True]
    async with desk.service.db.read() as tx:
        for table, left in (("forms_forms", 2), ("forms_submissions", 1), ("core_files", 0)):
            assert await tx.fetch_val(f"SELECT COUNT(*) FROM {table}") == left


@pytest.mark.both_databases
async def test_spam_is_forgotten_first_and_the_rest_as_the_settings_say(
    make_service: Any, make_tenant: Any, clock: FakeClock
) -> None:
    service = await make_service(**WITH_FORMS, forms={"spam_days": 2, "submission_days": 5})
    desk = Desk(service, await make_tenant(service), clock)
    form = await desk.form(NAME, PHOTO)
    files = {"photo": ("a.png", PNG, "image/png")}

    async def counts() -> tuple[int, int, int]:
        async with service.db.read() as tx:
            left = await tx.fetch_val("SELECT COUNT(*) AS count FROM core_files")
        spam = await desk.submissions(form, spam="true")
        return len(await desk.submissions(form)), len(spam), left

    async with visiting(service) as visitor:
        await visitor.post(form, data={"name": "Ann"}, files=files)
        await visitor.post(form, data={"name": "Bot", form["honeypot"]: "x"}, files=files)
    before = await counts()
    # What is done every hour, and is at work as the clock is moved, would next be done an hour after that.
    await settled(service)
    clock.advance(2 * DAY_S + 1)

    async def spam_is_gone() -> bool:
        return await counts() == (1, 0, 1)

    async def all_is_gone() -> bool:
        return await counts() == (0, 0, 0)

    assert before == (1, 1, 2)
    await until(spam_is_gone, interval_s=0.05)
    await settled(service)
    clock.advance(3 * DAY_S)
    await until(all_is_gone, interval_s=0.05)
    assert await counts() == (0, 0, 0)
