"""Sign-ins as the database has them, and the parts that take them on."""

from typing import Any

from starlette.requests import Request

from msgsvc_auth import plugin
from msgsvc_auth.addressed import AddressedSignIns
from msgsvc_auth.buttons import SealedButtons
from msgsvc_auth.codes import Codes, IssuedCode
from msgsvc_auth.confirming import Confirmations
from msgsvc_auth.exchange import CodeExchange
from msgsvc_auth.hosted.addresses import AddressQuestions
from msgsvc_auth.hosted.models import Site
from msgsvc_auth.hosted.service import HostedSignIn
from msgsvc_auth.hosted.sites import Sites
from msgsvc_auth.inbound import SignInBot
from msgsvc_auth.links import StaticLinks
from msgsvc_auth.metrics import SignInMetrics
from msgsvc_auth.mini_app.service import MiniAppSignIn
from msgsvc_auth.models import CodeKind, Session, StaticLink
from msgsvc_auth.platforms.visits import PlatformVisits
from msgsvc_auth.requested.pages import RequestedPages
from msgsvc_auth.requested.question_limits import QuestionLimits
from msgsvc_auth.requested.questions import DirectQuestions
from msgsvc_auth.requested.sending import QuestionSender
from msgsvc_auth.requested.service import RequestedSignIns
from msgsvc_auth.service import SignIn
from msgsvc_auth.session_limits import AddressLimits, AskingLimits
from msgsvc_auth.settings import AuthSettings
from msgsvc_core.projects.models import Project
from msgsvc_devkit import FakeClock, FakeContext, plugin_context
from msgsvc_devkit.fakes import PROJECT, fake_secrets

NOW_MS = FakeClock().now_ms()
SESSION_ID = "ses_" + "a" * 44
TOKEN = "t" * 22
LINK = StaticLink(PROJECT, "lnk_1", "shop", "Shop", "https://shop.example/back", False, 0)
SITE = Site(LINK, Project(PROJECT, "Shop", "active", 0))


def pending(**fields: Any) -> Session:
    """A sign-in that waits for its Yes."""
    return Session(
        **{
            "project_id": PROJECT,
            "session_id": SESSION_ID,
            "stored_status": "pending",
            "state": "",
            "callback_url": None,
            "channel": None,
            "lang": None,
            "created_at_ms": NOW_MS,
            "expires_at_ms": NOW_MS + 600_000,
            **fields,
        }
    )


def issued() -> IssuedCode:
    return Codes(fake_secrets()).issue(SESSION_ID)


def confirmed(code: IssuedCode | None = None, **fields: Any) -> Session:
    """A sign-in whose code can be exchanged."""
    code = code or issued()
    return pending(
        **{
            "stored_status": "confirmed",
            "subscriber_id": "sub_1",
            "nonce": code.nonce,
            "code_hash": code.hash,
            "confirmed_at_ms": NOW_MS,
            "code_expires_at_ms": NOW_MS + 300_000,
            **fields,
        }
    )


def row_of(value: Session | StaticLink) -> dict[str, Any]:
    """As the database has it."""
    row = {name: getattr(value, name) for name in value.__dataclass_fields__}
    row["must_prove"] = " ".join(value.must_prove)
    return {**row, "status": row.pop("stored_status")} if isinstance(value, Session) else row


def slot(used: int = 0) -> list[Any]:
    """What the database answers to one more session in an hour, of which `used` were opened."""
    first = {"first": 1 if used else None, "newest": used or None}
    return [[], [first], 0, [{"at_ms": NOW_MS}]]


def request(
    path: str = "/login/shop",
    *,
    method: str = "GET",
    cookies: dict[str, str] | None = None,
    headers: dict[str, str] | None = None,
    query: str = "",
) -> Request:
    """As a browser sends it."""
    given = {
        "host": "msgsvc.test",
        "cookie": "; ".join(f"{name}={value}" for name, value in (cookies or {}).items()),
        **(headers or {}),
    }
    return Request(
        {
            "type": "http",
            "method": method,
            "scheme": "http",
            "server": ("msgsvc.test", 80),
            "client": ("203.0.113.7", 50000),
            "path": path,
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in given.items()],
            "path_params": {"slug": "shop"},
            "state": {},
        }
    )


class Auth:
    """The plugin's parts over one database that has no tables."""

    def __init__(self, settings: AuthSettings | None = None, **context: Any) -> None:
        self.core: FakeContext = plugin_context(plugin=plugin, **context)
        self.settings = settings or AuthSettings()
        self.metrics = SignInMetrics(
            registry=self.core.metrics.registry, label=self.core.metrics.channels.label
        )
        self.links = StaticLinks(
            clock=self.core.clock, channels=self.core.channels, allow_http=False
        )

    def exchange(self, kind: CodeKind = "site") -> CodeExchange:
        return CodeExchange(
            clock=self.core.clock,
            subscribers=self.core.subscribers,
            metrics=self.metrics,
            kind=kind,
        )

    def confirmations(self) -> Confirmations:
        return Confirmations(
            clock=self.core.clock,
            codes=Codes(self.core.secrets),
            subscribers=self.core.subscribers,
            events=self.core.events,
            billing=self.core.billing,
            contacts=self.core.contacts,
            code_lifetime_s=self.settings.code_lifetime_s,
        )

    def visits(self) -> PlatformVisits:
        return PlatformVisits(
            clock=self.core.clock,
            db=self.core.db,
            secrets=self.core.secrets,
            channels=self.core.channels,
            jobs=self.core.jobs,
            settings=self.settings,
            base_url="http://msgsvc.test",
        )

    def sign_in(self) -> SignIn:
        return SignIn(
            clock=self.core.clock,
            db=self.core.db,
            secrets=self.core.secrets,
            settings=self.settings,
            metrics=self.metrics,
            channels=self.core.channels,
            confirmations=self.confirmations(),
            exchange=self.exchange(),
        )

    def bot(self) -> SignInBot:
        return SignInBot(
            clock=self.core.clock,
            texts=self.core.texts,
            projects=self.core.projects,
            buttons=SealedButtons(self.core.secrets),
            sign_in=self.sign_in(),
            links=self.links,
        )

    def requested_pages(self) -> RequestedPages:
        return RequestedPages(
            clock=self.core.clock,
            settings=self.settings,
            base_url="http://msgsvc.test/",
            sign_in=self.sign_in(),
        )

    def sender(self) -> QuestionSender:
        return QuestionSender(
            texts=self.core.texts,
            projects=self.core.projects,
            channels=self.core.channels,
            messages=self.core.messages,
            outbox=self.core.outbox,
            buttons=SealedButtons(self.core.secrets),
            sign_in=self.sign_in(),
        )

    def questions(self) -> DirectQuestions:
        return DirectQuestions(
            subscribers=self.core.subscribers,
            sign_in=self.sign_in(),
            limits=QuestionLimits(clock=self.core.clock, settings=self.settings),
            sender=self.sender(),
        )

    def requested(self) -> RequestedSignIns:
        return RequestedSignIns(
            clock=self.core.clock,
            codes=Codes(self.core.secrets),
            exchange=self.exchange("plugin"),
            sign_in=self.sign_in(),
            pages=self.requested_pages(),
            questions=self.questions(),
        )

    def sites(self) -> Sites:
        return Sites(
            db=self.core.db,
            projects=self.core.projects,
            links=self.links,
            requested=self.requested_pages(),
        )

    def hosted(self) -> HostedSignIn:
        return HostedSignIn(
            clock=self.core.clock,
            db=self.core.db,
            limiter=self.core.limiter,
            settings=self.settings,
            channels=self.core.channels,
            sign_in=self.sign_in(),
        )

    def addressed(self) -> AddressedSignIns:
        return AddressedSignIns(
            texts=self.core.texts,
            projects=self.core.projects,
            channels=self.core.channels,
            subscribers=self.core.subscribers,
            outbox=self.core.outbox,
            buttons=SealedButtons(self.core.secrets),
            sign_in=self.sign_in(),
            limits=AddressLimits(self.core.clock, self.settings),
        )

    def address_questions(self) -> AddressQuestions:
        return AddressQuestions(
            db=self.core.db,
            channels=self.core.channels,
            settings=self.settings,
            sign_in=self.sign_in(),
            addressed=self.addressed(),
            limits=AskingLimits(self.core.clock, self.settings),
        )

    def mini_apps(self) -> MiniAppSignIn:
        return MiniAppSignIn(
            clock=self.core.clock,
            db=self.core.db,
            projects=self.core.projects,
            channels=self.core.channels,
            sign_in=self.sign_in(),
            links=self.links,
            minutes=self.settings.mini_app_minutes,
        )

    def counted(self, outcome: str, channel: str = "") -> float | None:
        labels = {"outcome": outcome, "channel": channel}
        return self.core.metrics.registry.get_sample_value("msgsvc_auth_sign_ins_total", labels)
