"""The form of the pages that selects an existing or a new person."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import parse_qs

from starlette.requests import Request

from msgsvc_core.api.body import check_encoding
from msgsvc_core.kernel.i18n import LISTED
from msgsvc_sandbox.models import NewPerson

#: Largest form that is read; ours has five short fields.
MAX_FORM_BYTES = 8192


@dataclass(frozen=True)
class PersonForm:
    """The submitted fields, so that a rejected form is shown again with them."""

    person_id: str = ""
    name: str = ""
    username: str = ""
    lang: str = ""
    start: str = ""

    def person(self, languages: Sequence[str]) -> NewPerson:
        """The new person; raises pydantic's `ValidationError` if the form is not filled in well."""
        given = {"name": self.name, "username": self.username, "lang": self.lang or "en"}
        return NewPerson.model_validate(given, context={LISTED: languages})


async def read_form(request: Request) -> PersonForm:
    """The form of a request. Fields that are not ours are ignored, as browsers may add some."""
    check_encoding(request)
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_FORM_BYTES:
            return PersonForm()
    try:
        fields = parse_qs(body.decode(), max_num_fields=20)
    except ValueError:
        return PersonForm()
    known = {name: values[0] for name, values in fields.items() if name in _FIELDS}
    return PersonForm(**known)


_FIELDS = frozenset(PersonForm.__dataclass_fields__)
