"""Steps of the tour with conversations and pages: a form, a ticket and the dashboard."""

from typing import TYPE_CHECKING, Any

from msgsvc_devkit.demo.parts import PROJECT, sign_in_link
from msgsvc_devkit.demo.stage import expect

if TYPE_CHECKING:
    from msgsvc_devkit.demo.tour import Cast

#: A form for the messenger and the web page.
FORM: dict[str, Any] = {
    "slug": "club",
    "title": {"en": "Reading club", "ru": "Книжный клуб"},
    "thanks": {"en": "See you there!", "ru": "До встречи!"},
    "min_fill_seconds": 0,
    "fields": [
        {
            "key": "genre",
            "type": "choice",
            "label": {"en": "What do you like to read?", "ru": "Что вы любите читать?"},
            "required": True,
            "options": [
                {"value": "poems", "label": {"en": "Poems", "ru": "Стихи"}},
                {"value": "novels", "label": {"en": "Novels", "ru": "Романы"}},
            ],
        },
        {
            "key": "favourite",
            "type": "text",
            "label": {"en": "Your favourite poem?", "ru": "Любимое стихотворение?"},
        },
        {
            "key": "books",
            "type": "number",
            "label": {"en": "How many books a year?", "ru": "Сколько книг в год?"},
            "required": True,
            "min": 0,
        },
    ],
    "rules": [
        {
            "when": {"field": "genre", "op": "eq", "value": "novels"},
            "to": {"kind": "next_field", "field": "books"},
        }
    ],
}


async def fill_in_form(cast: "Cast") -> None:
    """Борис fills in a form in the messenger; another person fills it in on a web page."""
    boris, channel = cast.boris, "messenger_a"
    async with cast.stage.step(
        "Борис fills in a form in the bot; questions that do not apply are skipped"
    ):
        form = await cast.api.post("/v1/forms", FORM)
        await boris.open(form["links"][channel])
        question = await boris.sees(channel, "Что вы любите читать?", button="Романы")
        await boris.press(question, "Романы")
        await boris.sees(channel, "Сколько книг в год?", button="Отмена")
    async with cast.stage.step(
        "An invalid number is asked for again; Борис goes back and changes an answer"
    ):
        await boris.say(channel, "много")
        again = await boris.sees(channel, "число", button="‹ Назад")
        await boris.press(again, "‹ Назад")
        question = await boris.sees(channel, "Текущий ответ: Романы", button="Стихи")
        await boris.press(question, "Стихи")
        await boris.sees(channel, "Любимое стихотворение?", button="Пропустить")
        await boris.say(channel, "«Парус» *")
        await boris.sees(channel, "Сколько книг в год?")
        await boris.say(channel, "12")
    async with cast.stage.step("Борис reviews and submits: form.submitted, with typed answers"):
        await boris.press(await boris.sees(channel, "Всё верно?", button="Отправить"), "Отправить")
        await boris.sees(channel, "До встречи!")
        event = await cast.api.event("form.submitted", first_name="Борис")
        answers = {answer["key"]: answer["value"] for answer in event["answers"]}
        wanted = {"genre": "poems", "favourite": "«Парус» *", "books": 12}
        expect(answers, wanted, "the answers")
    async with cast.stage.step("The same form is submitted from a web page: form.submitted"):
        body = {"genre": "novels", "books": 3}
        async with cast.plain.post(f"/f/{form['form_id']}", json=body) as answer:
            expect(answer.status, 201, await answer.text())
        await cast.api.event("form.submitted", source="web", form_id=form["form_id"])


async def answer_ticket(cast: "Cast") -> None:
    """Ann asks a question, an agent of the library replies, and Ann rates the reply."""
    ann, channel = cast.ann, "messenger_b"
    async with cast.stage.step("Ann writes to the bot, which opens a ticket: ticket.created"):
        links = (await cast.api.post("/v1/subscribers/links", {}))["links"]
        await ann.open(links[channel])
        await ann.sees(channel, PROJECT)
        await ann.say(channel, "Do you have Emma in large print?")
        created = await cast.api.event("ticket.created", first_name="Ann")
    ticket = f"/v1/tickets/{created['ticket_id']}"
    async with cast.stage.step("An agent is assigned and replies; the reply arrives in Ann's chat"):
        member = {"name": "Clara", "email": "clara@library.example", "role": "agent"}
        clara = (await cast.api.post("/v1/members", member))["member_id"]
        await cast.api.patch(ticket, {"assignee_id": clara})
        reply = {"text": "Yes, **two copies**.", "format": "markdown", "member_id": clara}
        await cast.api.post(f"{ticket}/reply", reply)
        await ann.sees(channel, "Yes, two copies.")
        await ann.say(channel, "Wonderful!")
        await cast.api.event("ticket.replied", author="customer", text="Wonderful!")
    async with cast.stage.step("The ticket is closed and Ann rates it: ticket.csat_received"):
        await cast.api.patch(ticket, {"status": "closed"})
        await ann.press(await ann.sees(channel, "", button="5"), "5")
        await ann.press(await ann.sees(channel, "", button="Skip"), "Skip")
        rated = await cast.api.event("ticket.csat_received", ticket_id=created["ticket_id"])
        expect(rated["score"], 5, "the score")


async def open_dashboard(cast: "Cast") -> None:
    """The owner signs in with a one-time link and sees the results of the tour."""
    async with cast.stage.step("The owner opens the dashboard with a one-time link"):
        link = await sign_in_link(cast.parts)
        browser = await cast.new_browser()
        expect(await browser.press(link), 200, "the status after the button of the link")
        expect(await browser.press(link), 404, "the status after the link was used")
    async with cast.stage.step("The dashboard's overview shows the tour's messages and sign-ins"):
        page = await browser.read(f"{cast.parts.service_url}/dashboard")
        for title in (PROJECT, "Delivered", "Signed in"):
            expect(title in page, True, f"{title!r} on the overview")
        expect("First steps" in page, False, "unfinished first steps")
