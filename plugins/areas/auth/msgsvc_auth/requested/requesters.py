"""Who asks for a sign-in, as people are shown it."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from msgsvc_auth.clients import printable
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.security.http_urls import MAX_URL_LENGTH

#: Characters of a requester's name; longer ones are cut.
MAX_NAME_LENGTH = 100


@dataclass(frozen=True, slots=True)
class Requester:
    """A name in one line of printable characters, and a web address; empty for one without a site."""

    name: str
    url: str

    @classmethod
    def of(cls, name: str, url: str) -> "Requester":
        """Raises `ValidationFailed` for a name without characters, and a URL that a page can't link to."""
        shown = printable(name)[:MAX_NAME_LENGTH]
        if not shown:
            raise ValidationFailed("must hold more than spaces", field="requester_name")
        if url and not _is_web_address(url):
            raise ValidationFailed("must be an http or https URL", field="requester_url")
        return cls(shown, url)


def _is_web_address(url: str) -> bool:
    """What a browser takes for a site, and not e.g. for a script."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return False
    plain = url.isprintable() and " " not in url and "\\" not in url and "@" not in parts.netloc
    return bool(parts.scheme in {"http", "https"} and host and plain) and len(url) <= MAX_URL_LENGTH
