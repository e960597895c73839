"""Handles web submissions: answers, spam, limits, and duplicates."""

import asyncio
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from msgsvc_core.db import Database, Tx
from msgsvc_core.files.service import Files
from msgsvc_core.kernel.clock import DAY_MS, Clock
from msgsvc_core.kernel.errors import PayloadTooLarge, ValidationFailed
from msgsvc_core.kernel.i18n import Texts
from msgsvc_core.kernel.json import to_json
from msgsvc_core.kernel.validation_messages import shortened
from msgsvc_core.limits import Limiter
from msgsvc_core.security.networks import customer_network
from msgsvc_forms.addresses import honeypot_of
from msgsvc_forms.answers import Answers, Value, WrongAnswer, read_answer
from msgsvc_forms.definition import Definition
from msgsvc_forms.errors import FormFilesLimited, FormRateLimited
from msgsvc_forms.fields import FormField
from msgsvc_forms.models import Form, NewSubmission, SpamReason, Submission
from msgsvc_forms.question_flow import path
from msgsvc_forms.settings import FormsSettings
from msgsvc_forms.submissions import Submissions
from msgsvc_forms.summary import files_of
from msgsvc_forms.texts import explain
from msgsvc_forms.web.posted import LANG, TOKEN, Posted, PostedFile
from msgsvc_forms.web.public import PublicForms
from msgsvc_forms.web.tokens import PageToken

#: Seconds of the window in which submissions are counted (decision 0075: a minute).
WINDOW_S = 60

#: The window of `forms.file_bytes_per_day`.

#: Findings that one answer to a program names.
MOST_NAMED = 3


class WrongAnswers(ValidationFailed):
    """Invalid answers, by key, for the version of the form that was filled in."""

    def __init__(self, texts: Texts, form: Form, wrong: Mapping[str, WrongAnswer]) -> None:
        self.form, self.wrong = form, wrong
        _ = texts.into("en", __name__)
        found = []
        for key, each in list(wrong.items())[:MOST_NAMED]:
            field = form.definition.field(key)
            assert field is not None, "what is wrong is an answer to a question"
            found.append(f"{key}: {explain(_, field, each)}")
        super().__init__("; ".join(found))


@dataclass(frozen=True, slots=True)
class _Read:
    """What was sent, as far as it is known without writing anything."""

    form: Form
    answers: Answers
    files: Mapping[str, list[PostedFile]]
    wrong: Mapping[str, WrongAnswer]
    token: PageToken | None
    spam: SpamReason | None

    def file_bytes(self) -> int:
        return sum(file.size for files in self.files.values() for file in files)


class Intake:
    """Accepts submissions from the web."""

    def __init__(
        self,
        *,
        clock: Clock,
        db: Database,
        limiter: Limiter,
        texts: Texts,
        files: Files,
        submissions: Submissions,
        forms: PublicForms,
        settings: FormsSettings,
    ) -> None:
        self._clock = clock
        self._db = db
        self._limiter = limiter
        self._texts = texts
        self._files = files
        self._submissions = submissions
        self._forms = forms
        self._settings = settings

    async def count_address(self, form: Form, address: str) -> None:
        """Raises `FormRateLimited` for an address that sends too much."""
        limit = self._settings.submissions_per_minute_per_address
        # Those whose address nobody knows are counted together.
        key = f"forms.address:{form.project_id}:{customer_network(address)}"
        await self._count(key, limit, "from one address", "submissions_per_minute_per_address")

    async def submit(self, form: Form, posted: Posted, lang: str) -> Submission:
        """Keeps what was sent in. The same sent twice from one page is one submission.

        Raises `WrongAnswers`, `NoToken`, `ValidationFailed` for names that are not of the form,
        `FormRateLimited`, `FormFilesLimited`, and `BillingBlocked`.
        """
        read = self._read(await self._forms.version_of(form, posted), posted)
        if read.wrong and read.spam != "honeypot":
            raise WrongAnswers(self._texts, read.form, read.wrong)
        once_key = await asyncio.to_thread(_once_key, read)
        if once_key is not None:
            async with self._db.read() as tx:
                if (
                    there := await self._submissions.find_by_once_key(tx, form, once_key)
                ) is not None:
                    return there
        # Spam has slots of its own, so that it can't take those of people.
        kind = "form" if read.spam is None else "spam"
        limit = self._settings.submissions_per_minute
        await self._count(
            f"forms.{kind}:{form.form_id}", limit, "of this form", "submissions_per_minute"
        )
        async with self._db.transaction() as tx:
            return await self._save(tx, read, once_key, lang)

    def _read(self, form: Form, posted: Posted) -> _Read:
        definition = form.definition
        honeypot = honeypot_of(definition)
        keys = {field.key for field in definition.fields}
        for name in sorted(posted.names - keys - {honeypot, TOKEN, LANG}):
            raise ValidationFailed("the form has no such field", field=shortened(name))
        token = self._forms.token_of(form, posted)
        answers, wrong = _answers(definition, posted)
        return _Read(
            form,
            answers,
            # Spam is kept with what is wrong in it: but no file that no question takes.
            {key: list(files) for key, files in posted.files.items() if key in keys - wrong.keys()},
            wrong,
            token,
            self._spam(definition, posted.values.get(honeypot), token),
        )

    def _spam(
        self, definition: Definition, honeypot: Any, token: PageToken | None
    ) -> SpamReason | None:
        if any(honeypot) if isinstance(honeypot, list) else honeypot:
            return "honeypot"
        least_ms = definition.min_fill_seconds * 1000
        if token is not None and self._clock.now_ms() - token.issued_ms < least_ms:
            return "too_fast"
        return None

    async def _save(self, tx: Tx, read: _Read, once_key: str | None, lang: str) -> Submission:
        answers, added = dict(read.answers), []
        file_bytes = read.file_bytes()
        await self._check_room(tx, read, file_bytes)
        for key, files in read.files.items():
            stored = await self._store(tx, read.form, key, files)
            added += [file["file_id"] for file in stored]
            if stored:
                answers[key] = stored
        submission = await self._submissions.submit(
            tx,
            NewSubmission(
                read.form,
                "web",
                answers,
                lang,
                once_key=once_key,
                spam=read.spam,
                file_bytes=file_bytes,
            ),
        )
        if added and set(added) != set(files_of(submission.ordered)):
            # The same came at the same moment, and was first.
            await self._files.remove(tx, read.form.project_id, added)
        return submission

    async def _check_room(self, tx: Tx, read: _Read, file_bytes: int) -> None:
        """Raises `FormFilesLimited` where a day's files are too many with these."""
        if not file_bytes:
            return
        # Check and insert under one lock, or concurrent requests would all pass the check.
        await tx.lock(f"files of the forms of {read.form.project_id}")
        limit, now_ms = self._settings.file_bytes_per_day, self._clock.now_ms()
        full_ms = await self._submissions.full_until(
            tx,
            read.form.project_id,
            now_ms - DAY_MS,
            spam=read.spam is not None,
            room=limit - file_bytes,
        )
        if file_bytes > limit:
            full_ms = now_ms
        if full_ms is not None:
            raise FormFilesLimited(
                "more than {limit} bytes of files in 24 hours (the setting forms.file_bytes_per_day)",
                limit=limit,
                retry_after_s=-(-(full_ms + DAY_MS - now_ms) // 1000),
            )

    async def _store(
        self, tx: Tx, form: Form, key: str, files: Iterable[PostedFile]
    ) -> list[dict[str, Value]]:
        stored = []
        for posted in files:
            try:
                file = await self._files.add(
                    tx, form.project_id, filename=posted.filename, content=posted.file
                )
            except (ValidationFailed, PayloadTooLarge):
                raise WrongAnswers(self._texts, form, {key: WrongAnswer("bad_file")}) from None
            stored.append(
                {
                    "file_id": file.file_id,
                    "filename": file.filename,
                    "mime_type": file.mime_type,
                    "size": file.size,
                    "type": file.type,
                }
            )
        return stored

    async def _count(self, key: str, limit: int, whose: str, setting: str) -> None:
        # It bounds load, and guards no secret: without Redis each process counts alone.
        window = await self._limiter.hit(key, limit, WINDOW_S, when_away="count_locally")
        if not window.allowed:
            raise FormRateLimited(
                "more than {limit} submissions {origin} in {seconds} s (the setting forms.{setting})",
                limit=limit,
                origin=whose,
                seconds=WINDOW_S,
                setting=setting,
                retry_after_s=window.retry_after_s,
            )


def _answers(
    definition: Definition, posted: Posted
) -> tuple[dict[str, Value], dict[str, WrongAnswer]]:
    """Typed answers by key, and what is wrong. What no way leads to need not be filled in."""
    answers: dict[str, Value] = {}
    wrong: dict[str, WrongAnswer] = {}
    for field in definition.fields:
        try:
            value = _answer(field, posted)
        except WrongAnswer as error:
            wrong[field.key] = error
        else:
            if value is not None:
                answers[field.key] = value
    has_file = {key for key, files in posted.files.items() if files}
    for field in path(definition, answers):
        is_given = field.key in has_file or answers.get(field.key, False) is not False
        if field.required and not is_given:
            wrong.setdefault(field.key, WrongAnswer("required"))
    return answers, wrong


def _answer(field: FormField, posted: Posted) -> Value:
    if field.type == "file":
        files = posted.files.get(field.key, ())
        if posted.values.get(field.key) not in (None, "", [], [""]):
            raise WrongAnswer("not_file")
        if len(files) > field.max_files:
            raise WrongAnswer("too_many", most=field.max_files)
        return None
    if field.key in posted.files:
        raise WrongAnswer("not_text")
    given = posted.given(field.key, several=field.type == "multichoice")
    if isinstance(given, list):
        given = [one for one in given if one != ""]
    value = read_answer(field.model_copy(update={"required": False}), given)
    # A box that is not ticked is not sent, and says no.
    return False if value is None and field.type == "consent" and not posted.is_json else value


def _once_key(read: _Read) -> str | None:
    """The digest of a page and what was filled in on it: a double click, and a reload, give the same."""
    if read.token is None:
        return None
    files = {key: [file.fingerprint() for file in files] for key, files in read.files.items()}
    whole = to_json([read.token.text, sorted(read.answers.items()), sorted(files.items())])
    return hashlib.sha256(whole.encode()).hexdigest()


__all__ = ["Intake", "WrongAnswers"]
