"""Random conversations through two services at once, whose only memory is the database."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from msgsvc_core.channels import ChannelUser, Update
from msgsvc_core.service import Service
from msgsvc_devkit import settled
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_forms.definition import Definition
from msgsvc_forms.dialogue import State
from msgsvc_forms.question_flow import path

from .conftest import WITH_FORMS
from .scripts import NONSENSE, definitions, good_answers
from .talker import Talker

#: Without files, which need a fetch each.
KINDS = ("text", "number", "date", "choice", "multichoice", "rating", "consent")

#: What somebody does next: a word, and a number that chooses among what there is.
MOVES = st.tuples(
    st.sampled_from(
        ["answer"] * 5
        + ["press"] * 3
        + [
            "nonsense",
            "old",
            "back",
            "skip",
            "cancel",
            "later",
            "go",
            "edit",
            "twice",
            "lang",
            "open",
        ]
    ),
    st.integers(0, 99),
)

_numbers = count(1)


@dataclass
class Run:
    """One person in one conversation, and what was seen of it."""

    services: Sequence[Service]
    definition: Definition
    slug: str
    talker: Talker
    taken: dict[str, Any] = field(default_factory=dict)
    acts: int = 0

    async def state(self) -> State | None:
        """Where the conversation stands; None if none is under way."""
        async with self.services[0].db.read() as tx:
            row = await tx.fetch_one(
                "SELECT state FROM forms_dialogues WHERE chat_id = :chat AND status = 'active'",
                {"chat": self.talker.who["chat_id"]},
            )
        return None if row is None else State.from_json(json.loads(row["state"]))

    async def receive(self, update: Update) -> None:
        """Every other update comes to the other service, as after a restart; none makes it fail."""
        self.acts += 1
        await self.services[self.acts % 2].inbound.receive("messenger_a", update)
        await settled(self.services[0])
        async with self.services[0].db.read() as tx:
            taken = await tx.fetch_val(
                "SELECT COUNT(*) FROM core_updates WHERE update_id = :id", {"id": update.update_id}
            )
        # What fails is rolled back, and leaves no trace.
        assert taken == 1

    async def act(self, word: str, number: int) -> None:
        before = await self.state()
        if before is None:
            return
        question = None if before.at is None else self.definition.field(before.at)
        match word:
            case "answer" if question is not None:
                await self.talker.say(_one_of(good_answers(question), number)[0])
            case "nonsense":
                await self.talker.say(_one_of(NONSENSE[2:], number))
            case "press" | "twice":
                await self.press(number % 9, twice=word == "twice")
            case "old":
                await self.press(number, twice=False, among=len(self.talker.shown))
            case "edit" if self.talker.refs:
                await self.talker.change(
                    _one_of(self.talker.refs, number), ["word", "12", "v1"][number % 3]
                )
            case "open":
                await self.talker.open(self.slug)
            case "lang":
                await self.talker.say(f"/lang {['en', 'ru'][number % 2]}")
            case _:
                await self.talker.say(f"/{word}")
        after = await self.state()
        if after is not None and word not in {"press", "twice", "old"}:
            assert set(before.answers) <= set(after.answers)

    async def press(self, number: int, *, twice: bool, among: int = 1) -> None:
        """A button of the last message, or of any; `twice` at once, by two services."""
        shown = self.talker.shown[-among:]
        buttons = [(one, button) for one in shown for row in one.message.buttons for button in row]
        if not buttons:
            return
        message, button = _one_of(buttons, number)
        press = self.talker.press_of(button.text, message)
        if not twice:
            await self.talker.receive(press)
            return
        other = replace(press, update_id=f"again{next(_numbers)}")
        both = zip(self.services, (press, other), strict=True)
        await asyncio.gather(*(one.inbound.receive("messenger_a", update) for one, update in both))
        await settled(self.services[0])

    async def finish(self) -> None:
        """Somebody who only answers comes to the end."""
        for _ in range(6 * len(self.definition.fields) + 6):
            state = await self.state()
            if state is None:
                return
            if state.phase != "open":
                await self.talker.say("/go")
            elif state.at is None:
                self.taken = {
                    key: one.value for key, one in state.answers.items() if key not in state.skipped
                }
                await self.talker.say("/send")
            else:
                question = self.definition.field(state.at)
                assert question is not None
                text, value = good_answers(question)[0]
                # One question alone is sent with its answer.
                self.taken = {state.at: value}
                await self.talker.say(text)
        raise AssertionError("no way to the end")


def _one_of(things: Sequence[Any], number: int) -> Any:
    return things[number % len(things)]


async def converse(
    services: Sequence[Service],
    tenant: Tenant,
    definition: Definition,
    moves: Sequence[tuple[str, int]],
) -> None:
    number = next(_numbers)
    slug = f"form-{number}"
    body = {**definition.model_dump(mode="json", exclude_unset=True), "slug": slug}
    made = await tenant.client.post("/v1/forms", json=body)
    assert made.status_code == 201, made.text
    talker = Talker(services[0], ChannelUser(f"u{number}", "Ann", None, "en"))
    run = Run(services, definition, slug, talker)
    talker.receive = run.receive  # type: ignore[method-assign] # every update by the run
    await talker.open(slug)
    for word, which in moves:
        await run.act(word, which)
    await run.finish()
    form_id = made.json()["form_id"]
    kept = (await tenant.client.get(f"/v1/forms/{form_id}/submissions")).json()["data"]
    feed = (await tenant.client.get("/v1/events?limit=100")).json()["data"]
    told = [
        one["data"]["submission_id"]
        for one in feed
        if one["event"] == "form.submitted" and one["data"]["form_id"] == form_id
    ]

    assert told == [one["submission_id"] for one in kept]
    assert len(kept) == len({one["submission_id"] for one in kept})
    if kept and run.taken:
        asked = path(definition, run.taken)
        assert [(one["key"], one["value"]) for one in kept[0]["answers"]] == [
            (one.key, run.taken[one.key]) for one in asked if one.key in run.taken
        ]


# Hypothesis draws in a thread, and the services' jobs use the same `random` in their loop's meanwhile.
@pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")
async def test_random_conversations_through_the_service_keep_to_the_model(
    make_service: ServiceFactory, make_tenant: Any
) -> None:
    limits = {"forms": {"forms_per_project": 10_000}}
    first = await make_service(**WITH_FORMS, **limits)
    second = await make_service(
        **WITH_FORMS, **limits, jobs={"runner": "none"}, database_url=first.settings.database_url
    )
    tenant = await make_tenant(first)
    loop = asyncio.get_running_loop()

    @settings(
        max_examples=10,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(definition=definitions(KINDS, 5), moves=st.lists(MOVES, min_size=3, max_size=14))
    def talk(definition: Definition, moves: list[tuple[str, int]]) -> None:
        talked = converse([first, second], tenant, definition, moves)
        asyncio.run_coroutine_threadsafe(talked, loop).result(60)

    await asyncio.to_thread(talk)
    async with first.db.read() as tx:
        sent = await tx.fetch_val("SELECT COUNT(*) FROM forms_submissions")

    assert sent >= 3
