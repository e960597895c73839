"""The pages for people."""

from starlette.routing import BaseRoute

from msgsvc_core.plugins.context import PluginContext
from msgsvc_oidc.authorization.browser_sessions import BrowserSessions
from msgsvc_oidc.authorization.consent_pages import ConsentPages
from msgsvc_oidc.authorization.cookies import BrowserCookies
from msgsvc_oidc.authorization.endings import RequestEndings
from msgsvc_oidc.authorization.issuing import CodeIssuer
from msgsvc_oidc.authorization.pages import AuthorizationPages
from msgsvc_oidc.authorization.questions import ConsentQuestions
from msgsvc_oidc.authorization.reading import RequestReader
from msgsvc_oidc.authorization.rendering import ConsentTemplates
from msgsvc_oidc.authorization.responses import BrowserResponses
from msgsvc_oidc.authorization.service import Authorizations
from msgsvc_oidc.authorization.sign_in_pages import SignInPages
from msgsvc_oidc.composition.records import Records
from msgsvc_oidc.composition.requests import Requests
from msgsvc_oidc.device_pages.pages import DevicePages
from msgsvc_oidc.device_pages.rendering import DeviceTemplates
from msgsvc_oidc.endpoints.client_access import RequestLimit
from msgsvc_oidc.logout.pages import LogoutPages
from msgsvc_oidc.logout.reading import LogoutReader
from msgsvc_oidc.logout.rendering import LogoutTemplates
from msgsvc_oidc.logout.service import Logouts
from msgsvc_oidc.settings import OidcSettings


class BrowserPages:
    """Sign-in for a client, consent, codes of devices, and sign-out."""

    def __init__(self, context: PluginContext, records: Records, requests: Requests) -> None:
        settings = context.settings(OidcSettings)
        cookies = BrowserCookies(
            issuers=records.issuers, sessions=records.sessions, references=records.references
        )
        templates = ConsentTemplates(context.texts)
        responses = BrowserResponses(
            issuers=records.issuers,
            texts=context.texts,
            settings=settings,
            cookies=cookies,
            templates=templates,
        )
        logouts = _logouts(context, records)
        self.authorizations = authorizations = _authorizations(context, records, requests, logouts)
        self._authorization = AuthorizationPages(
            issuers=records.issuers,
            limit=requests.limit("requests"),
            reader=RequestReader(
                clients=records.clients, pushed=requests.pushed, expected=requests.expected
            ),
            failed=requests.failed,
            authorizations=authorizations,
            cookies=cookies,
            responses=responses,
        )
        self._consent = ConsentPages(
            issuers=records.issuers,
            authorizations=authorizations,
            questions=_questions(context, records, authorizations),
            cookies=cookies,
            templates=templates,
            responses=responses,
        )
        self._device = DevicePages(
            issuers=records.issuers,
            limit=RequestLimit(
                limiter=context.limiter,
                per_minute=settings.device_codes_per_minute_per_address,
                name="device_codes",
            ),
            clients=records.clients,
            devices=requests.devices,
            authorizations=authorizations,
            cookies=cookies,
            responses=responses,
            templates=DeviceTemplates(context.texts),
        )
        self._logout = LogoutPages(
            issuers=records.issuers,
            limit=requests.limit("logouts"),
            reader=LogoutReader(
                issuers=records.issuers, clients=records.clients, keys=records.keys
            ),
            logouts=logouts,
            cookies=cookies,
            templates=LogoutTemplates(context.texts),
            responses=responses,
        )

    def routes(self) -> list[BaseRoute]:
        return [
            *self._authorization.routes(),
            *self._consent.routes(),
            *self._device.routes(),
            *self._logout.routes(),
        ]


def _logouts(context: PluginContext, records: Records) -> Logouts:
    return Logouts(
        db=context.db,
        sessions=records.sessions,
        grants=records.grants,
        deliveries=records.logouts,
        references=records.references,
    )


def _questions(
    context: PluginContext, records: Records, authorizations: Authorizations
) -> ConsentQuestions:
    return ConsentQuestions(
        db=context.db,
        projects=context.projects,
        subscribers=context.subscribers,
        clients=records.clients,
        authorizations=authorizations,
    )


def _authorizations(
    context: PluginContext, records: Records, requests: Requests, logouts: Logouts
) -> Authorizations:
    return Authorizations(
        clock=context.clock,
        db=context.db,
        lifetime_s=context.settings(OidcSettings).request_lifetime_s,
        clients=records.clients,
        sessions=BrowserSessions(sessions=records.sessions, endings=logouts),
        consents=records.consents,
        pages=SignInPages(
            issuers=records.issuers,
            sign_ins=context.peers.sign_ins,
            channels=context.channels,
        ),
        endings=RequestEndings(
            codes=CodeIssuer(
                issuers=records.issuers,
                consents=records.consents,
                grants=records.grants,
                journal=records.journal,
            ),
            devices=requests.devices,
        ),
    )
