"""The form `order` on a core in memory, and the parts of the plugin that it gives to nobody."""

from typing import Any

from msgsvc_core.billing import Charge
from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import Handler
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.plugins.tickets import TicketRequest
from msgsvc_devkit.core import PROJECT, MemoryCore
from msgsvc_forms import store
from msgsvc_forms.definition import Definition
from msgsvc_forms.models import CreateFormBody, Form, NewSubmission, Submission, SubmissionFilters
from msgsvc_forms.submissions import Submissions

#: Where the core is reached.
BASE_URL = "https://msgsvc.test"

FIELDS: list[dict[str, Any]] = [
    {"key": "name", "type": "text", "label": "Your name?", "required": True},
    {"key": "count", "type": "number", "label": "How many?", "min": 1, "max": 9},
]

FORM_ID = new_id("frm")


def new_form(**fields: Any) -> CreateFormBody:
    """The request that creates the form."""
    return CreateFormBody.model_validate(
        {"slug": "order", "title": "Order", "fields": FIELDS, **fields}
    )


def form_of(version: int = 1, **fields: Any) -> Form:
    """The form, with these fields of its definition."""
    definition = Definition.model_validate({"title": "Order", "fields": FIELDS, **fields})
    return Form(
        project_id=PROJECT,
        form_id=FORM_ID,
        slug="order",
        start="order",
        version=version,
        created_at_ms=0,
        updated_at_ms=0,
        content=definition.to_column(),
    )


FORM = form_of()


async def add_form(tx: Tx, **fields: Any) -> Form:
    """Stores the form, also with rules that lead nowhere."""
    form = form_of(**fields)
    await store.insert(tx, form)
    return form


async def submit(core: MemoryCore, tx: Tx, form: Form, **fields: Any) -> Submission:
    """Ann's submission from the web, unless `fields` of `NewSubmission` say otherwise."""
    given = {"source": "web", "answers": {"name": "Ann"}, "lang": "en", **fields}
    return await core.get(Submissions).submit(tx, NewSubmission(form, **given))


async def kept(tx: Tx, *, spam: bool = False) -> list[Submission]:
    """The submissions of the form, oldest first."""
    filters = SubmissionFilters(spam=spam)
    return await store.list_submissions(tx, PROJECT, FORM_ID, filters, None, 100, ascending=True)


def handler_of(core: MemoryCore, name: str) -> Handler:
    """The handler of jobs of that name."""
    [handler] = [each.handler for each in core.service.job_specs if each.name == name]
    return handler


class Till:
    """Billing that records the operations that it charged, each with its submission."""

    def __init__(self) -> None:
        self.charged: list[tuple[str, str]] = []

    @hookimpl
    async def charge(self, charge: Charge) -> None:
        self.charged.append((charge.operation, charge.resource_id))


class Desk:
    """A plugin that keeps tickets: those that were opened, and the sources that they forgot."""

    def __init__(self) -> None:
        self.opened: list[TicketRequest] = []
        self.forgotten: list[tuple[str, str, str]] = []

    @hookimpl
    async def open_ticket(self, request: TicketRequest) -> str:
        self.opened.append(request)
        return f"tkt_{len(self.opened)}"

    @hookimpl
    async def forget_source(self, project_id: str, source: str, source_id: str) -> None:
        self.forgotten.append((project_id, source, source_id))
