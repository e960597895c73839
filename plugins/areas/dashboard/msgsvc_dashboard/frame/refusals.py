"""What services refuse, in the language of whoever reads it on a page.

Services word their refusals in English, with values in them, for programs and people alike. Here stand
those that people meet on pages, each with places for its values; any other is shown as it is.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2.runtime import Context

    from msgsvc_core.kernel.i18n import Translate


def _(text: str) -> str:
    """Marks what is translated later."""
    return text


#: What is said of a field, after its name and a colon.
OF_FIELDS = (
    _("is required"),
    _("must not be null"),
    _("must hold more than spaces"),
    _("must hold more than spaces and invisible characters"),
    _("must be at most {most} characters"),
    _("must be at least {least} characters"),
    _("must have at most {most} characters"),
    _("must have at least {least} characters"),
    _("must have {least}-{most} characters"),
    _("must be at most {most} bytes as JSON"),
    _("must be greater than or equal to {least}"),
    _("must be less than or equal to {most}"),
    _("must be greater than {bound}"),
    _("must be less than {bound}"),
    _("must be a whole number"),
    _("must be a valid integer"),
    _("must be a valid number"),
    _("must be one of {known}"),
    _("must be in the future"),
    _("must not be in the future"),
    _("must be at most {days} days away"),
    _("must be a day, as {example}"),
    _("must be a time of RFC 3339 with seconds and Z or an offset, as {example}"),
    _("must be an http or https URL"),
    _("must begin with http:// or https://"),
    # Before the shorter one, whose place would take it all.
    _("the URL must begin with {schemes} (the operator allows it by {setting} in [webhooks])"),
    _("the URL must begin with {schemes}"),
    _("the address {address} is not public (the operator allows it by {setting} in [webhooks])"),
    _("the host {host} is a local name (the operator allows it by {setting} in [webhooks])"),
    _("must be an e-mail address"),
    _("must be an e-mail address, as {example}"),
    _("must be a JSON object, as {example}"),
    _("must be 1-48 of a-z, 0-9 and _, and begin with a letter"),
    _("must be printable characters without spaces at its ends"),
    _("must have five fields: minute, hour, day of month, month, day of week"),
    _("must be another ticket"),
    _("must not be the e-mail"),
    _("is one of those that are guessed first; take another"),
    _("is not the one that the app shows now"),
    _("is none that we know"),
    _("is in the past"),
    _("must lie in the years {first} to {last}"),
    _("there is no such time zone; give its IANA name, as Europe/Berlin"),
    _("there is no such place in the chain"),
    _("at most {most}"),
    _("at most {most} rows"),
    _("at most {most} characters on one line"),
    _("give day and time"),
    _("give a text, or one for {languages}"),
    _("give at least one of text, format, media and buttons"),
    _("from and to must differ"),
    _("this project has no tag {name}"),
    _("this project has no permission {name}"),
    _("this subscriber is on {channel}"),
    _("nothing would ever be sent"),
    _("type the number of subscribers who granted it"),
    _("look at the broadcast once more before it is sent"),
    _("look at the chain once more"),
    _("no file may be larger than {most} bytes"),
    _("only the operator of the service can set it"),
    _("a project has at most {limit}"),
    _("there is an account {email} already"),
    _("you have a member {email} already"),
    _("you have a canned answer {name} already"),
    _("you have a permission {name} already"),
    _("you have a template {name} already"),
    _("you have a tag {name} already"),
    _("you have a channel {name} of your own already"),
    _("this project has a form {name}"),
    _("{name} is taken, by this project or another"),
    _("the ticket of another customer, who would get the answers"),
)

#: Whole refusals.
WHOLE = (
    _("there is no such page"),
    _("a project has at most {limit} canned answers"),
    _("a project has at most {limit} chains"),
    _("a project has at most {limit} channels of its own"),
    _("a project has at most {limit} forms"),
    _("a project has at most {limit} scheduled and recurring messages open"),
    _("a project has at most {limit} templates"),
    _("a project has at most {limit} webhooks; delete one first"),
    _("a replay of this webhook is under way; wait until it has ended"),
    _("all connections are taken"),
    _("it has expired: nobody would get it"),
    _("it has not ended yet"),
    _("it was sent again to those of unknown fate before"),
    _("nobody who is still subscribed is of unknown fate"),
    _("only members of the project answer its customers"),
    _("only owners make owners, change them and remove them"),
    _("the bot of this message is gone"),
    _("the chain was changed meanwhile: look at it, and try once more"),
    _("the database can't be reached"),
    _("the delivery is being tried, or about to be"),
    _("the plan {name} has no CSV export; a higher plan has"),
    _("the project {name} is disabled"),
    _("the second factor is confirmed already"),
    _("the submission is not taken for spam"),
    _("the ticket is closed; set its status to open first"),
    _("the webhook has {count} valid secrets; wait until an old one has ended"),
    _("the webhook is disabled; set its status to active first"),
    _("the webhook of this delivery was deleted"),
    _("there is no active member {name}"),
    _("there is no canned answer {name}"),
    _("there is no chain {name}"),
    _("there is no form {name}"),
    _("there is no second factor to confirm; begin again"),
    _("there is no second factor"),
    _("there is no subscriber {name}"),
    _("there is no tag {name}"),
    _("there is no template {name}"),
    _("there is no ticket {name}"),
    _("this account can't sign in"),
    _("this channel can't delete messages that were sent"),
    _("this form is not one of ours, or too old; open the page anew"),
    _("this invitation was taken back"),
    _("this is the project's last owner; make somebody else owner first"),
    _("this link is no invitation"),
    _("this link was used, or has expired; ask for a new one"),
    _("this sign-in was used, or has expired; begin again"),
    _("ticket {number} is closed"),
    _("ticket {number} is taken by {name}"),
    _("ticket {number} was merged into {other}"),
    _("too many sign in at once"),
    _("who its recipients were is not kept any more"),
    _("you are a member of this project already"),
    _("you have a second factor; remove it before you set up another"),
    _("your role does not open this page"),
    _("{name} has joined, or was removed"),
    _("{name} is not subscribed"),
    _("{name} is on the helpdesk's blocklist"),
)

#: What fields of the API are called on pages.
FIELDS = {
    "attributes": _("Attributes"),
    "channel": _("Messenger"),
    "code": _("Code"),
    "email": _("E-mail"),
    "key": _("Key"),
    "lang": _("Language"),
    "name": _("Name"),
    "password": _("Password"),
    "permission": _("Permission"),
    "role": _("Role"),
    "status": _("Status"),
    "tags": _("Tags"),
    "template": _("Template"),
    "text": _("Text"),
    "timezone": _("Time zone"),
    "url": _("Address"),
}

_PLACE = re.compile(r"\\\{(\w+)\\\}")


def worded(message: str, translate: "Translate") -> str:
    """`message` of an error in the reader's language, as far as it is known here, or to the area whose
    texts `translate` has."""
    whole = _said(message, WHOLE, translate[__name__])
    if whole is not None:
        return whole
    return "; ".join(_of_field(part, translate) for part in _parts(message))


def in_page(context: "Context", message: str) -> str:
    """The filter `worded` of templates."""
    return worded(message, context["_"])


def _parts(message: str) -> Iterator[str]:
    """What is said of several fields at once, each for itself: `name: ...; text: ...`."""
    yield from re.split(r"; (?=[\w.\[\]]+: )", message)


def _of_field(text: str, translate: "Translate") -> str:
    field, colon, reason = text.partition(": ")
    ours = translate[__name__]
    said = _said(reason, OF_FIELDS, ours) if colon else None
    if said is None:
        # An own page has worded it already, or it is one that nobody listed.
        by_area = translate(text)
        return by_area if by_area != text else ours(text)
    return f"{ours(FIELDS[field]) if field in FIELDS else field}: {said}"


def _said(text: str, known: tuple[str, ...], translate: "Translate") -> str | None:
    """None for what is not `known`, and where English is read: there it says so itself."""
    for shape in known:
        found = _pattern(shape).fullmatch(text)
        if found is not None:
            translated = translate(shape)
            return None if translated == shape else _filled(translated, found.groupdict())
    return None


def _filled(text: str, values: Mapping[str, str]) -> str:
    return text.format(**values) if values else text


@cache
def _pattern(shape: str) -> re.Pattern[str]:
    return re.compile(_PLACE.sub(r"(?P<\1>.+)", re.escape(shape)))
