"""The lists among the pages, with every filter that their own forms and links offer."""

from collections.abc import Iterator, Mapping, Sequence
from html.parser import HTMLParser
from urllib.parse import parse_qsl, urlencode, urlsplit

from msgsvc_core.dashboard import Page
from tests.api.lists.filling import id_of
from tests.dashboard.walking import parameters

#: What fields that are written into are asked for, by page and field: one that nearly all have, one that the
#: oldest have, where a filter is for that.
WRITTEN: Mapping[str, Sequence[str]] = {
    "helpdesk.inbox tag": ("most", "rare", "nobody's"),
    "helpdesk.ticket_list tag": ("most", "rare"),
    "helpdesk.select_tickets tag": ("most", "rare"),
    "helpdesk.ticket tag": (),
    "operator.accounts query": ("ann5@shop.example", "nobody@shop.example"),
    "operator.projects query": ("shop", "nothing"),
    "billing.accounts email": ("ann5@shop.example", "nobody@shop.example"),
    "developers.jobs name": ("message.deliver", "drip.step"),
    "developers.jobs lane": ("channel:messenger_a", "default"),
    "messages.compose who": ("ann", "жан", "zoe"),
    "oidc.client redirect_uri": ("https://app.example/callback",),
    "messages.messages subscriber_id": (id_of("sub", 1), id_of("sub", 5)),
    "search.search q": ("ann1", "жан", "zoe", id_of("sub", 5)),
    "subscribers.merge_preview person": ("ann1", id_of("sub", 5)),
    "subscribers.subscribers query": ("ANN", "ann1", "жан", "customer-100", "zoe"),
}

#: Fields that are the same for each page they are on.
DATES = {"date": ("2026-01-01", "2026-03-01"), "datetime-local": ("2026-01-01T00:00",)}


#: Parameters of pages that show one thing, and no list that grows with the project.
OF_ONE_THING = frozenset(
    {
        "item_id",
        "slug",
        "session_id",
        "canned_answer",
        "otp_id",
        "name",
        "permission_key",
        "template",
    }
    | {"message_id", "number", "submission_id", "delivery_id", "record_id", "bulk_action_id"}
    | {"ticket_bulk_action_id", "route_id", "import_id", "channel_request_id"}
)

#: Not lists: they count what came in the days that they are asked for.
FIGURES = frozenset({"helpdesk.figures"})

#: What the form on a page sets anyway, taken off: its filters are offered there once more.
UNSET: Mapping[str, str] = {
    "helpdesk.inbox": "status=all",
    "helpdesk.select_tickets": "status=all",
    "helpdesk.ticket_list": "status=all",
}

#: Files are read to their end, by a page's worth at a time.
FILES = frozenset({"forms.export", "subscribers.export", "billing.export_ledger"})


class Offered(HTMLParser):
    """Where a page leads on to itself with another question: `queries`, in the order of the page."""

    def __init__(self, html: str, name: str, path: str) -> None:
        super().__init__()
        self.unknown: list[str] = []
        self._name, self._path = name, path
        self._queries: dict[str, None] = {}
        #: Of the form that is open: what it sends anyway, and what each of its fields can say.
        self._sent: dict[str, str] | None = None
        self._fields: dict[str, list[str]] = {}
        self._select = ""
        self.feed(html)
        self.close()

    @property
    def queries(self) -> Iterator[str]:
        return iter(self._queries)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "a":
            address = urlsplit(values.get("href", ""))
            if address.path == self._path and address.query:
                self._queries[address.query] = None
        elif tag == "form":
            here = urlsplit(values.get("action", "")).path == self._path
            self._sent = {} if here and values.get("method") == "get" else None
            self._fields = {}
        elif self._sent is not None and tag == "select":
            self._select = values["name"]
        elif self._sent is not None and tag == "option" and values.get("value"):
            self._fields.setdefault(self._select, []).append(values["value"])
        elif self._sent is not None and tag == "input" and "name" in values:
            self._field(values)

    def handle_endtag(self, tag: str) -> None:
        if tag == "form" and self._sent is not None:
            for name, said in self._fields.items():
                for value in said:
                    self._queries[urlencode({**self._sent, name: value})] = None
            self._sent = None

    def _field(self, values: Mapping[str, str]) -> None:
        assert self._sent is not None
        kind, name = values.get("type", "text"), values["name"]
        if kind == "hidden":
            self._sent[name] = values["value"]
        elif kind in {"checkbox", "radio"}:
            self._fields.setdefault(name, []).append(values.get("value", "on"))
        elif kind in DATES:
            self._fields[name] = [*DATES[kind]]
        elif f"{self._name} {name}" in WRITTEN:
            self._fields[name] = [*WRITTEN[f"{self._name} {name}"]]
        else:
            self.unknown.append(f"{self._name} {name}")


def older(queries: Iterator[str]) -> Iterator[str]:
    """Those that lead to a further page."""
    return (query for query in queries if "cursor" in dict(parse_qsl(query)))


def is_list(page: Page) -> bool:
    """Whether a page shows a list that grows with the project."""
    named = OF_ONE_THING.intersection(parameters(page))
    return page.method == "GET" and page.name not in FILES | FIGURES and not named
