"""Who sent an email: what the own mail server found out, and what only the recipient of a message knows."""

import re
from typing import Literal

from msgsvc_email.mail import Head
from msgsvc_email.structured import bare, recipients
from msgsvc_email.tokens import Tokens

#: `server`: the own server verified the sender's domain. `reply`: it is sent to an address, or answers a
#: message, that only the person was sent. `operator`: nothing proves it, and somebody has looked at the mail
#: and had it taken anyway.
Proof = Literal["server", "reply", "operator"]

_RESULT = re.compile(r"\s*(dmarc|dkim|spf)\s*=\s*([a-z]+)(.*)", re.IGNORECASE | re.DOTALL)
_PROPERTY = re.compile(r"(?<![a-z-])([a-z]++\.[a-z-]++)\s*+=\s*+([^\s;]++)", re.IGNORECASE)


def proof_of(
    head: Head, sender: str, *, tokens: Tokens, mailbox: str, authserv_id: str | None
) -> Proof | None:
    """How it is proven that `sender` sent the mail; None if it is not."""
    if authserv_id is not None and is_verified(head, sender, authserv_id):
        return "server"
    if any(tokens.is_subaddress(one, mailbox, "r", sender) for one in recipients(head)):
        return "reply"
    return "reply" if own_id_in(head, sender, tokens) is not None else None


def is_verified(head: Head, sender: str, authserv_id: str) -> bool:
    """Whether the server's `Authentication-Results` (RFC 8601) say that the mail is from the sender's domain.

    Only the topmost field with its name counts: others may have been in the mail before.
    """
    for value in head.all("authentication-results"):
        # What the sender of a mail may have filled, texts in quotes and comments, proves nothing.
        server, _, results = bare(value).partition(";")
        if server.split()[:1] == [authserv_id]:
            return _passes(results, sender.rpartition("@")[2])
    return False


def own_id_in(head: Head, sender: str, tokens: Tokens) -> str | None:
    """The message of ours to `sender` that the mail answers."""
    named = f"{head.get('in-reply-to')} {head.get('references')}".split()
    # What is answered comes first in one field, and last in the other.
    ordered = [*named[:1], *reversed(named)]
    return next((one.strip("<>") for one in ordered if tokens.is_own_id(one, sender)), None)


def _passes(results: str, domain: str) -> bool:
    passed: set[str] = set()
    for result in results.split(";"):
        found = _RESULT.match(result)
        if found is None or found[2].lower() != "pass":
            continue
        method, properties = found[1].lower(), dict(_PROPERTY.findall(found[3]))
        if _is_aligned(method, {k.lower(): v for k, v in properties.items()}, domain):
            passed.add(method)
    return "dmarc" in passed or {"dkim", "spf"} <= passed


def _is_aligned(method: str, properties: dict[str, str], domain: str) -> bool:
    """Whether a result is about the sender's domain itself. Organisational domains are DMARC's matter."""
    names = {"dmarc": ("header.from",), "dkim": ("header.d", "header.i"), "spf": ("smtp.mailfrom",)}
    return any(_domain(properties[name]) == domain for name in names[method] if name in properties)


def _domain(text: str) -> str:
    return text.rpartition("@")[2].lower().rstrip(".")
