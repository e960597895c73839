"""What a provider answers to the requests of the script, in facts that can be compared with another's.

A fact is about the protocol: a status, an error code, which members, claims, parameters and headers there
are. Values that each provider chooses for itself (tokens, texts, paths) are none.
"""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

import httpx2

from tests.oidc_clients.browsing import browser, forms_of, is_at
from tests.oidc_clients.provider import (
    CIBA,
    CODE,
    DEVICE,
    REFRESH,
    SCOPE,
    Answer,
    AuthMethod,
    ClientSpec,
    Provider,
    RegisteredClient,
)

Facts = dict[str, Any]

#: Facts by the names of cases, in their order.
Recording = dict[str, Facts]

REDIRECT_URI = "http://127.0.0.1:18080/callback"
AFTER_LOGOUT = "http://127.0.0.1:18080/bye"
STATE = "a-state"

#: Of forms that are sent as text.
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
VERIFIER = "a-verifier-of-forty-three-characters-or-more"
CHALLENGE = base64.urlsafe_b64encode(sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()

_SCHEME = re.compile(r"^(\w+)")
_ERROR = re.compile(r'error="([^"]+)"')


@dataclass(frozen=True, slots=True)
class Party:
    """A client of the script, and how it authenticates."""

    client: RegisteredClient
    auth_method: AuthMethod

    def authenticated(self) -> tuple[dict[str, str], tuple[str, str] | None]:
        """Its parameters in a form, and its name and secret for the header."""
        name, secret = self.client.client_id, self.client.client_secret or ""
        if self.auth_method == "client_secret_basic":
            return {}, (name, secret)
        if self.auth_method == "client_secret_post":
            return {"client_id": name, "client_secret": secret}, None
        return {"client_id": name}, None


@dataclass(slots=True)
class Script:
    """Sends requests to a provider, and records the facts of its answers by case."""

    provider: Provider
    metadata: dict[str, Any]
    web: Party
    post: Party
    public: Party
    device: Party
    ciba: Party
    http: httpx2.AsyncClient
    recording: Recording = field(default_factory=dict)

    def record(self, case: str, facts: Facts) -> None:
        assert case not in self.recording, case
        self.recording[case] = {name: fact for name, fact in facts.items() if fact is not None}

    def endpoint(self, name: str) -> str:
        return str(self.metadata[f"{name}_endpoint"])

    def request(self, party: Party | None = None, /, **changes: str | None) -> dict[str, str]:
        """The parameters of a valid authorization request, with changes; None leaves one out."""
        valid: dict[str, str | None] = {
            "client_id": (party or self.web).client.client_id,
            "redirect_uri": REDIRECT_URI,
            "response_type": "code",
            "scope": "openid profile",
            "state": STATE,
            "nonce": "a-nonce",
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
        }
        return {name: value for name, value in (valid | changes).items() if value is not None}

    async def authorize(
        self,
        case: str,
        parameters: Mapping[str, str] | Sequence[tuple[str, str]],
        *,
        cookies: httpx2.Cookies | None = None,
        method: str = "GET",
    ) -> None:
        """Records what the authorization endpoint answers at first."""
        async with browser(cookies) as client:
            query = urlencode(parameters)
            if method == "GET":
                page = await client.get(f"{self.endpoint('authorization')}?{query}")
            else:
                page = await client.post(
                    self.endpoint("authorization"), content=query, headers=FORM
                )
        self.record(case, self._of_page(page))

    async def call(
        self,
        case: str | None,
        endpoint: str,
        party: Party | None,
        data: Mapping[str, str] | None = None,
        **options: Any,
    ) -> httpx2.Response:
        """Posts a form to an endpoint as a client, and records the answer."""
        fields, auth = party.authenticated() if party else ({}, None)
        if auth is not None:
            options.setdefault("auth", auth)
        answer = await self.http.post(
            self.endpoint(endpoint), data={**fields, **(data or {})}, **options
        )
        if case is not None:
            self.record(case, facts_of(answer))
        return answer

    async def signed_in(
        self,
        parameters: Mapping[str, str],
        cookies: httpx2.Cookies | None = None,
        *,
        yes: bool = True,
    ) -> Answer:
        """Where the browser goes after the person has signed in."""
        url = f"{self.endpoint('authorization')}?{urlencode(parameters)}"
        return await self.provider.sign_in(
            url, httpx2.Cookies() if cookies is None else cookies, yes=yes
        )

    async def code(self, party: Party | None = None, /, **changes: str | None) -> str:
        """A code."""
        answer = await self.signed_in(self.request(party, **changes))
        return parameters_of(answer)["code"]

    async def exchange(
        self, case: str | None, party: Party, code: str, /, **changes: str | None
    ) -> httpx2.Response:
        """Exchanges a code as is right, with changes; None leaves a parameter out."""
        valid: dict[str, str | None] = {
            "grant_type": CODE,
            "code": code,
            "redirect_uri": REDIRECT_URI,
            "code_verifier": VERIFIER,
        }
        data = {name: value for name, value in (valid | changes).items() if value is not None}
        return await self.call(case, "token", party, data)

    async def tokens(self, party: Party | None = None, /) -> dict[str, Any]:
        """The tokens of a new sign-in, with a refresh token."""
        party = party or self.web
        code = await self.code(party, scope=SCOPE, prompt="consent")
        answer = await self.exchange(None, party, code)
        tokens: dict[str, Any] = answer.raise_for_status().json()
        return tokens

    async def refresh(
        self, case: str | None, party: Party, token: str, **more: str
    ) -> httpx2.Response:
        data = {"grant_type": REFRESH, "refresh_token": token, **more}
        return await self.call(case, "token", party, data)

    def _of_page(self, page: httpx2.Response) -> Facts:
        """An answer of the authorization endpoint: to the client, the first page for the person, or an
        error page."""
        if page.is_redirect:
            target = urljoin(str(page.url), page.headers["location"])
            if is_at(target, self.provider.issuer):
                return {"goes": "to the person"}
            facts = facts_of_answer(Answer(target))
            return {"goes": "to the client", "status": page.status_code, **facts}
        forms = forms_of(page)
        if forms and not is_at(forms[0].action, self.provider.issuer):
            facts = facts_of_answer(Answer(forms[0].action, forms[0].fields))
            return {"goes": "to the client by a form", "status": page.status_code, **facts}
        if page.status_code == 200:
            return {"goes": "to the person"}
        return {"goes": "nowhere", "status": page.status_code}


def parameters_of(answer: Answer) -> dict[str, str]:
    """What goes to the client."""
    if answer.form is not None:
        return answer.form
    parts = urlsplit(answer.url)
    return dict(parse_qsl(parts.query)) | dict(parse_qsl(parts.fragment))


def facts_of_answer(answer: Answer) -> Facts:
    """Which parameters go to the client, and the error code."""
    parameters = parameters_of(answer)
    return {
        "error": parameters.get("error"),
        "parameters": sorted(parameters),
        "fragment": True if urlsplit(answer.url).fragment else None,
        "state": parameters.get("state"),
    }


def facts_of(answer: httpx2.Response) -> Facts:
    """An answer to a client."""
    facts: Facts = {"status": answer.status_code}
    if answer.content:
        facts["type"] = answer.headers.get("content-type", "").partition(";")[0]
    if facts.get("type") == "application/json":
        body = answer.json()
        facts["members"] = sorted(body)
        facts["error"] = body.get("error")
    facts["not stored"] = "no-store" in answer.headers.get("cache-control", "")
    if challenge := answer.headers.get("www-authenticate"):
        scheme, error = _SCHEME.search(challenge), _ERROR.search(challenge)
        bearer = scheme is not None and scheme[1] == "Bearer"
        facts["challenge"] = " ".join(found[1] for found in (scheme, bearer and error) if found)
    return facts


def claims_of(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header and the claims of a signed token, which is not verified."""
    header, claims = (
        json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        for part in token.split(".")[:2]
    )
    return header, claims


async def script_for(provider: Provider, http: httpx2.AsyncClient) -> Script:
    """A script with new clients of a provider."""

    async def party(
        name: str, auth_method: AuthMethod, grants: tuple[str, ...] = (CODE, REFRESH)
    ) -> Party:
        spec = ClientSpec(
            name=name,
            redirect_uris=[REDIRECT_URI] if CODE in grants else [],
            post_logout_redirect_uris=[AFTER_LOGOUT],
            auth_method=auth_method,
            grant_types=grants,
        )
        return Party(await provider.register(spec), auth_method)

    found = await http.get(f"{provider.issuer}/.well-known/openid-configuration")
    return Script(
        provider,
        found.raise_for_status().json(),
        web=await party("Web", "client_secret_basic"),
        post=await party("Post", "client_secret_post"),
        public=await party("Public", "none"),
        device=await party("Device", "client_secret_basic", (DEVICE, REFRESH)),
        ciba=await party("Back end", "client_secret_basic", (CIBA, REFRESH)),
        http=http,
    )
