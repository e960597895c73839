"""A page that asks one person for their code, and what it shows."""

from typing import Literal
from urllib.parse import urlencode, urlsplit

from msgsvc_core.kernel.values import value_object
from msgsvc_core.projects.models import Project
from msgsvc_otp.models import OneTimeCode

#: What a page says: it asks, or it is over. `blocked` takes no more guesses for a while.
PageState = Literal["asks", "expired", "spent", "verified"]


@value_object
class CodePage:
    """A stored page."""

    token_digest: str
    project_id: str
    first_otp_id: str
    otp_id: str
    return_url: str
    lang: str | None
    expires_at_ms: int
    result_taken: bool = False

    @property
    def host(self) -> str:
        """The site that people go back to."""
        return urlsplit(self.return_url).netloc

    def returning(self, **added: str) -> str:
        """The site's address with more parameters."""
        parts = urlsplit(self.return_url)
        query = urlencode(added)
        whole = f"{parts.query}&{query}" if parts.query else query
        return parts._replace(query=whole).geturl()


@value_object
class OpenedPage:
    """A page as a browser opens it. `resend_in_s` is 0 when another code can be sent."""

    token: str
    page: CodePage
    code: OneTimeCode
    project: Project
    messenger: str
    state: PageState
    resend_in_s: int
    expires_in_s: int
    #: Where a verified person goes on.
    back: str | None = None


#: Why what somebody did on the page had no effect, by the name of its text.
Fault = Literal["empty", "wrong", "blocked", "too_early", "too_many", "unavailable"]
