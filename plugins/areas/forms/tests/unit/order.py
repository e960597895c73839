"""A form as its tables hold it, and what makes the parts that work with it, from fakes."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from msgsvc_core.kernel.json import to_json
from msgsvc_devkit import FakeContext
from msgsvc_devkit.fakes import PROJECT, FakeTx
from msgsvc_devkit.fakes.database import Reply
from msgsvc_forms.copies import Copies
from msgsvc_forms.definition import Definition
from msgsvc_forms.dialogue_store import Dialogue
from msgsvc_forms.dialogues import Dialogues
from msgsvc_forms.models import Form, Submission
from msgsvc_forms.prompts import Prompts
from msgsvc_forms.service import Forms
from msgsvc_forms.settings import FormsSettings
from msgsvc_forms.submission_router import SubmissionRouter
from msgsvc_forms.submissions import Submissions
from msgsvc_forms.web.public import PublicForms
from msgsvc_forms.web.tokens import PageTokens

FIELDS: list[dict[str, Any]] = [
    {"key": "name", "type": "text", "label": "Your name?", "required": True},
    {"key": "count", "type": "number", "label": "How many?", "min": 1, "max": 9},
]


def definition(**fields: Any) -> Definition:
    return Definition.model_validate({"title": "Order", "fields": FIELDS, **fields})


def form_of(version: int = 1, **fields: Any) -> Form:
    """The form `order`, with what `fields` say of its definition."""
    return Form(
        project_id=PROJECT,
        form_id="frm_1",
        slug="order",
        start="order",
        version=version,
        created_at_ms=0,
        updated_at_ms=0,
        content=definition(**fields).to_column(),
    )


FORM = form_of()

SENT_IN = Submission(
    project_id=PROJECT,
    submission_id="fsb_1",
    form_id="frm_1",
    version=1,
    source="web",
    subscriber_id=None,
    lang="en",
    spam=None,
    answers=to_json([{"key": "name", "type": "text", "value": "Ann"}]),
    leads="[]",
    created_at_ms=0,
)


def with_file(file_id: str, **fields: Any) -> Submission:
    """A submission that has a file."""
    value = [{"file_id": file_id, "filename": "a.png"}]
    answers = [{"key": "photo", "type": "file", "value": value}]
    return replace(SENT_IN, answers=to_json(answers), **fields)


def tables(
    form: Form | None = FORM, *submissions: Submission, others: Mapping[str, Reply] | None = None
) -> dict[str, Reply]:
    """What the tables answer that hold a form and what was sent in; `others` come first."""
    versions = [] if form is None else [asdict(form)]
    usual: dict[str, Reply] = {
        "SELECT COUNT(*) AS count FROM forms_forms": [{"count": len(versions)}],
        "FROM forms_forms f JOIN forms_versions": versions,
        "SELECT 1 FROM forms_forms": [] if form is None else [{"1": 1}],
        "UPDATE forms_forms": len(versions),
        "DELETE FROM forms_forms": 1,
        "INSERT INTO forms_submissions": 1,
        "UPDATE forms_submissions": 1,
        "DELETE FROM forms_submissions": len(submissions),
        "FROM forms_submissions": [asdict(each) for each in submissions],
        "FROM forms_copies": [],
        "INSERT INTO forms_dialogues": 1,
        "UPDATE forms_dialogues": 1,
        "FROM forms_dialogues": [],
    }
    first = dict(others or {})
    return first | {words: usual[words] for words in usual if words not in first}


def tx_of(*given: Any, **others: Any) -> FakeTx:
    return FakeTx(replies=tables(*given, **others))


def router(core: FakeContext) -> SubmissionRouter:
    return SubmissionRouter(
        settings=core.config,
        texts=core.texts,
        channels=core.channels,
        subscribers=core.subscribers,
        tags=core.tags,
        messages=core.messages,
        mailings=core.mailings,
        tickets=core.peers.tickets,
    )


def copies(core: FakeContext) -> Copies:
    return Copies(
        clock=core.clock,
        db=core.db,
        jobs=core.jobs,
        messages=core.messages,
        mailings=core.mailings,
        tickets=core.peers.tickets,
    )


def forms(core: FakeContext, **settings: Any) -> Forms:
    return Forms(
        clock=core.clock,
        jobs=core.jobs,
        projects=core.projects,
        router=router(core),
        settings=FormsSettings(**settings),
    )


def submissions(core: FakeContext) -> Submissions:
    return Submissions(
        clock=core.clock,
        events=core.events,
        billing=core.billing,
        subscribers=core.subscribers,
        files=core.files,
        forms=forms(core),
        router=router(core),
        copies=copies(core),
    )


def prompts(core: FakeContext) -> Prompts:
    return Prompts(texts=core.texts, default_lang="en", channels=core.channels, forms=forms(core))


def dialogues(core: FakeContext) -> Dialogues:
    return Dialogues(
        clock=core.clock,
        projects=core.projects,
        subscribers=core.subscribers,
        files=core.files,
        outbox=core.outbox,
        forms=forms(core),
        submissions=submissions(core),
        prompts=prompts(core),
    )


def public_forms(core: FakeContext) -> PublicForms:
    return PublicForms(
        clock=core.clock,
        db=core.db,
        projects=core.projects,
        forms=forms(core),
        tokens=PageTokens(core.secrets),
        settings=FormsSettings(),
    )


def conversation(
    *, at: str | None = "name", answers: Mapping[str, Sequence[Any]] | None = None, **fields: Any
) -> Dialogue:
    """Anna's conversation in her chat, at a question; `answers` are (value, message_ref) by key."""
    state = {
        "at": at,
        "turn": 1,
        "phase": fields.pop("phase", "open"),
        "tries": 0,
        "answers": dict(answers or {}),
        "skipped": fields.pop("skipped", []),
        "draft": [],
        "refused_ref": None,
        "offer": fields.pop("offer", None),
    }
    values: dict[str, Any] = {
        "project_id": PROJECT,
        "dialogue_id": "fdl_1",
        "channel": "messenger_a",
        "chat_id": "chat 1",
        "subscriber_id": "sub_1",
        "form_id": "frm_1",
        "version": 1,
        "status": "active",
        "state": to_json(state),
        "revision": 1,
        "aside_at_ms": None,
        "created_at_ms": 0,
        "updated_at_ms": 0,
    }
    return Dialogue(**{**values, **fields})


def under_way(*conversations: Dialogue) -> dict[str, Reply]:
    """Has these conversations be found."""
    return {"FROM forms_dialogues": [asdict(each) for each in conversations]}
