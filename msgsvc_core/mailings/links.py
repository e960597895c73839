"""Tracked links: the URLs of a mailing's message lead through this service, which counts who opened them.

The address of a link names the link of the mailing, and the recipient, and is signed: nothing is stored for a
recipient before they open it (docs/decisions/0032-mailings.md).
"""

import hashlib
import hmac
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from msgsvc_core.content.links import with_urls
from msgsvc_core.content.outgoing import Button, OutgoingMessage
from msgsvc_core.kernel.errors import NotFound
from msgsvc_core.kernel.ids import encode_base62, new_id
from msgsvc_core.kernel.values import value_object
from msgsvc_core.mailings.content import KEPT, MailingContent, read_column
from msgsvc_core.mailings.models import Mailing
from msgsvc_core.security import SecretBox

#: What the signatures are for.
PURPOSE = "tracked link"

#: The path of the addresses, before the token.
PATH = "/l/"

#: Bytes of a link's id and of a signature, and base62 characters of each. A forged signature would count a
#: click of somebody else and lead to no other page, so 64 bits are enough, and shorten every message.
_BYTES, _WIDTH = 8, 11

_PREFIX = "sub_"

#: Stands for what differs by recipient in the addresses of a message that many get. No address has such a
#: sign, and no text has it after a link's id.
_HOLE = "\ue000"

_TOKEN = re.compile(
    rf"([0-9A-Za-z]{{{_WIDTH}}})([0-9A-Za-z]{{{_WIDTH}}})([0-9A-Za-z]{{1,64}})", re.ASCII
)


@value_object
class LinkToken:
    """What an address leads to: a link of a mailing, and the recipient who got it."""

    link_id: str
    subscriber_id: str


class LinkTracking:
    """Makes and reads the addresses of tracked links. `base_url` is the public address of the service."""

    def __init__(self, *, secrets: SecretBox, base_url: str) -> None:
        self._secrets = secrets
        self._base_url = base_url.rstrip("/")

    def links_of(self, mailing: Mailing) -> dict[str, str]:
        """The tracked URLs of a mailing and its variants by the id of the link, in the order of the messages;
        empty if it is not tracked."""
        columns = [mailing.content, *(each["content"] for each in mailing.variants)]
        urls = [url for column in columns for url in self._urls(read_column(column))]
        return {link_id_of(mailing.job_id, url): url for url in urls}

    def message_for(
        self, job_id: str, subscriber_id: str, content: MailingContent, message: OutgoingMessage
    ) -> OutgoingMessage:
        """A recipient's `message` with its links tracked; the same one if it has none."""
        if not content.tracks_links or not subscriber_id.startswith(_PREFIX):
            return message
        tail = subscriber_id.removeprefix(_PREFIX)
        if not content.is_shared(message):
            urls = self._urls(content)
            return self._with_addresses(message, job_id, urls, partial(self._own_part, tail))
        # Its text is parsed once, and not for each of 100,000 recipients.
        key = self._base_url, job_id, id(message)
        if key not in content.tracked:
            if len(content.tracked) >= KEPT:
                content.tracked.clear()
            content.tracked[key] = self._template_of(message, job_id, content)
        template, link_ids = content.tracked[key]
        text, buttons = template.text, template.buttons
        for link_id in link_ids:
            hole, own = link_id + _HOLE, link_id + self._own_part(tail, link_id)
            text = text.replace(hole, own)
            if buttons:
                buttons = tuple(tuple(_filled(each, hole, own) for each in row) for row in buttons)
        return replace(template, text=text, buttons=buttons) if link_ids else message

    def sample_of(self, content: MailingContent, message: OutgoingMessage) -> OutgoingMessage:
        """The message of some recipient, to see whether it could be sent: addresses are of one length."""
        return self.message_for("job_sample", new_id("sub"), content, message)

    def read(self, token: str) -> LinkToken:
        """Raises `NotFound` for what was not signed here."""
        match = _TOKEN.fullmatch(token)
        if match is None:
            raise NotFound("there is no page at this address")
        link_id, signature, tail = match.groups()
        known = self._secrets.derive_all(PURPOSE, link_id, tail)
        # Compared with each before `any`: the duration must not reveal which key matched.
        matches = [hmac.compare_digest(signature, _signature(each)) for each in known]
        if not any(matches):
            raise NotFound("there is no page at this address")
        return LinkToken(link_id, f"{_PREFIX}{tail}")

    @property
    def _is_public(self) -> bool:
        return self._base_url.startswith("https:")

    def _urls(self, content: MailingContent) -> list[str]:
        """Pages of this service are left out: who is sent there is known to it, e.g. by their preferences."""
        if not content.tracks_links:
            return []
        return [url for url in content.urls if not f"{url}/".startswith(f"{self._base_url}/")]

    def _template_of(
        self, message: OutgoingMessage, job_id: str, content: MailingContent
    ) -> tuple[OutgoingMessage, list[str]]:
        """A shared message with places for what differs by recipient, and the ids of its links."""
        urls = self._urls(content)
        template = self._with_addresses(message, job_id, urls, lambda _link_id: _HOLE)
        shown = [template.text, *(each.url or "" for row in template.buttons for each in row)]
        link_ids = [link_id_of(job_id, url) for url in urls]
        return template, [
            link_id for link_id in link_ids if any(link_id + _HOLE in each for each in shown)
        ]

    def _with_addresses(
        self,
        message: OutgoingMessage,
        job_id: str,
        urls: Sequence[str],
        part_after: Callable[[str], str],
    ) -> OutgoingMessage:
        """The message with the addresses of its links, which end with `part_after` of a link's id; the same
        object if it has none."""

        def address(url: str) -> str | None:
            if url not in urls:
                return None
            link_id = link_id_of(job_id, url)
            return f"{self._base_url}{PATH}{link_id}{part_after(link_id)}"

        tracked = with_urls(message, address)
        if not self._is_public:
            # Messengers refuse buttons to hosts without TLS.
            tracked = replace(tracked, buttons=message.buttons)
        return message if tracked == message else tracked

    def _own_part(self, tail: str, link_id: str) -> str:
        """What ends the address of a recipient: the signature, and the random part of their id."""
        return _signature(self._secrets.derive(PURPOSE, link_id, tail)) + tail


def _filled(button: Button, hole: str, own: str) -> Button:
    if button.url is None or hole not in button.url:
        return button
    return replace(button, url=button.url.replace(hole, own))


def link_id_of(job_id: str, url: str) -> str:
    """The id of a mailing's link: the same whenever it is computed, and another one in another mailing."""
    return encode_base62(hashlib.sha256(f"{job_id} {url}".encode()).digest()[:_BYTES], _WIDTH)


def _signature(derived: bytes) -> str:
    return encode_base62(derived[:_BYTES], _WIDTH)
