"""A fake of Telegram's OpenID Connect as an HTTP server on this machine.

It behaves as documented at core.telegram.org/bots/telegram-login: authorization code with PKCE, redirect URIs
registered beforehand, client authentication by HTTP Basic, an ID token signed by a published key, and no
userinfo. `sub` is not the user's id: that is claim `id`.
"""

import base64
import hashlib
import html
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit

from aiohttp import ClientSession, web
from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

from msgsvc_devkit.platforms.telegram.people import Person
from msgsvc_devkit.web_servers import stop

Key = RSAKey | ECKey

#: Has characters that have to be encoded in a header.
SECRET = "login-secret/of+tests:0123456789"

#: Seconds for which a code can be exchanged, and for which an ID token is valid.
CODE_S = 60
TOKEN_S = 3600

#: Scopes that exist.
SCOPES = frozenset({"openid", "profile", "phone", "telegram:bot_access"})

#: Makes the ID token from the fake and the claims that it would sign.
Forge = Callable[["FakeTelegramLogin", dict[str, Any]], str]


@dataclass(frozen=True, slots=True)
class Asked:
    """A visit to the page."""

    query: Mapping[str, str]
    browser_token: str


@dataclass(frozen=True, slots=True)
class Grant:
    """What a person allowed, by its code."""

    asked: Asked
    claims: Mapping[str, Any]
    expires_at: float


class FakeTelegramLogin:
    """`async with FakeTelegramLogin("4711", redirect_uris=[...]) as login`.

    `allow` and `decline` are a person's answer on the page; in a real browser, the page has two buttons for
    `visitor`. `forge` replaces the ID token.
    """

    def __init__(
        self,
        client_id: str = "7000000001",
        *,
        client_secret: str = SECRET,
        redirect_uris: list[str] | None = None,
        algorithm: str = "RS256",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.client_id = client_id
        self.client_secret = client_secret
        self.redirect_uris = redirect_uris or []
        self.forge: Forge | None = None
        #: The person at real browsers, and the phone number that they share.
        self.visitor: tuple[Person, str | None] | None = None
        #: Claims in place of those that the tokens would have.
        self.claims: dict[str, Any] = {}
        #: Paths of all requests, in order.
        self.requests: list[str] = []
        #: Statuses with which the next requests of a path are answered, instead of what is documented.
        self.failures: dict[str, list[int]] = {}
        self.write_access: set[int] = set()
        self._algorithm = algorithm
        self._clock = clock
        self._asked: dict[str, Asked] = {}
        self._grants: dict[str, Grant] = {}
        self.key = new_key(algorithm)
        #: The published keys: older ones stay for a while.
        self.published: list[dict[str, Any]] = [public(self.key)]

    # ---- for tests ------------------------------------------------------------------------------

    async def allow(
        self, url: str, person: Person, *, phone: str | None = None, bot_access: bool = True
    ) -> str:
        """Opens the page, and allows what it asks for; returns the address to which the browser is sent.

        `phone` is shared if it is asked for. Raises `ValueError` if the page shows an error.
        """
        return await self._answer(url, _shared(person, phone, bot_access=bot_access))

    async def decline(self, url: str) -> str:
        """Opens the page, and cancels; returns the address to which the browser is sent."""
        return await self._answer(url, {"cancel": "1"})

    def rotate(self, *, publish: bool = True) -> None:
        """Signs with a new key from now on."""
        self.key = new_key(self._algorithm)
        if publish:
            self.published.append(public(self.key))

    def sign(self, claims: Mapping[str, Any]) -> str:
        """An ID token of these claims."""
        header = {"alg": self._algorithm, "kid": self.key.kid}
        return jwt.encode(header, dict(claims), self.key, algorithms=[self._algorithm])

    def count(self, path: str) -> int:
        """The number of requests to a path."""
        return self.requests.count(path)

    async def _answer(self, url: str, fields: Mapping[str, str]) -> str:
        async with ClientSession() as browser:
            async with browser.get(url) as page:
                text = await page.text()
                if page.status != 200:
                    raise ValueError(f"the page shows {page.status}: {text}")
            token = text.partition('name="token" value="')[2].partition('"')[0]
            form = {**fields, "token": token}
            async with browser.post(
                f"{self.url}/auth/answer", data=form, allow_redirects=False
            ) as sent:
                return sent.headers["Location"]

    # ---- start and stop -------------------------------------------------------------------------

    async def __aenter__(self) -> "FakeTelegramLogin":
        app = web.Application(middlewares=[self._note])
        app.router.add_get("/auth", self._page)
        app.router.add_post("/auth/answer", self._decide)
        app.router.add_post("/token", self._token)
        app.router.add_get("/.well-known/jwks.json", self._keys)
        app.router.add_get("/.well-known/openid-configuration", self._configuration)
        self._runner = web.AppRunner(app, shutdown_timeout=0.01, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await stop(self._runner)

    @web.middleware
    async def _note(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.requests.append(request.path)
        failures = self.failures.get(request.path, [])
        if failures:
            return web.json_response({"error": "server_error"}, status=failures.pop(0))
        response: web.StreamResponse = await handler(request)
        return response

    # ---- endpoints ------------------------------------------------------------------------------

    async def _page(self, request: web.Request) -> web.Response:
        query = dict(request.query)
        problem = self._problem(query)
        if problem:
            # Never by a redirect: neither the client nor its address is certain (RFC 6749, 4.1.2.1).
            return web.Response(text=problem, status=400)
        asked = Asked(query, secrets.token_urlsafe(16))
        self._asked[asked.browser_token] = asked
        return web.Response(text=self._form(asked), content_type="text/html")

    def _form(self, asked: Asked) -> str:
        fields, buttons = {"token": asked.browser_token}, ""
        if self.visitor is not None:
            person, phone = self.visitor
            fields |= _shared(person, phone, bot_access=True)
            buttons = '<button>Allow</button> <button name="cancel" value="1">Cancel</button>'
        inputs = "".join(
            f'<input type="hidden" name="{name}" value="{html.escape(value)}">'
            for name, value in fields.items()
        )
        return f'<form method="post" action="/auth/answer">{inputs}{buttons}</form>'

    def _problem(self, query: Mapping[str, str]) -> str | None:
        scopes = set(query.get("scope", "").split())
        checks = {
            "unknown client_id": query.get("client_id") == self.client_id,
            "redirect_uri is not registered": query.get("redirect_uri") in self.redirect_uris,
            "response_type": query.get("response_type") == "code",
            "scope": "openid" in scopes and scopes <= SCOPES,
            "state": 8 <= len(query.get("state", "")) <= 128,
            "code_challenge_method": query.get("code_challenge_method") == "S256",
            "code_challenge": len(query.get("code_challenge", "")) == 43,
        }
        return next((name for name, holds in checks.items() if not holds), None)

    async def _decide(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        asked = self._asked.pop(form.get("token", ""), None)
        if asked is None:
            return web.Response(text="the request is gone", status=400)
        answer = {"state": asked.query["state"]}
        if "cancel" in form:
            answer["error"] = "access_denied"
        else:
            answer["code"] = secrets.token_urlsafe(32)
            self._grants[answer["code"]] = self._grant(asked, form)
        uri = asked.query["redirect_uri"]
        location = f"{uri}{'&' if urlsplit(uri).query else '?'}{urlencode(answer)}"
        return web.Response(status=302, headers={"Location": location})

    def _grant(self, asked: Asked, form: Mapping[str, str]) -> Grant:
        scopes = asked.query["scope"].split()
        user_id = int(form["user"])
        claims: dict[str, Any] = {
            "sub": hashlib.sha256(f"{self.client_id}:{user_id}".encode()).hexdigest()[:24],
            "id": user_id,
        }
        if "profile" in scopes:
            claims |= {"name": form["name"], "picture": f"{self.url}/picture.jpg"}
            claims |= {"preferred_username": form["username"]} if "username" in form else {}
        if "phone" in scopes and "phone" in form:
            claims |= {"phone_number": form["phone"]}
        if "telegram:bot_access" in scopes and "bot_access" in form:
            self.write_access.add(user_id)
        return Grant(asked, claims, self._clock() + CODE_S)

    async def _token(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        if request.headers.get("Authorization") is None or not self._is_client(request):
            return web.json_response({"error": "invalid_client"}, status=401)
        if request.content_type != "application/x-www-form-urlencoded":
            return web.json_response({"error": "invalid_request"}, status=415)
        if form.get("grant_type") != "authorization_code":
            return web.json_response({"error": "unsupported_grant_type"}, status=400)
        grant = self._grants.pop(form.get("code", ""), None)
        if grant is None or not self._fits(grant, form):
            return web.json_response({"error": "invalid_grant"}, status=400)
        claims = self._claims(grant)
        token = self.forge(self, claims) if self.forge else self.sign(claims)
        body = {
            "access_token": secrets.token_urlsafe(16),
            "token_type": "Bearer",
            "expires_in": TOKEN_S,
            "id_token": token,
        }
        return web.json_response(body, headers={"Cache-Control": "no-store"})

    def _is_client(self, request: web.Request) -> bool:
        kind, _, given = request.headers["Authorization"].partition(" ")
        client_id, _, secret = base64.b64decode(given).decode().partition(":")
        # Both are form-encoded (RFC 6749, section 2.3.1).
        known = (self.client_id, self.client_secret)
        return kind == "Basic" and (unquote(client_id), unquote(secret)) == known

    def _fits(self, grant: Grant, form: Mapping[str, str]) -> bool:
        query, verifier = grant.asked.query, form.get("code_verifier", "")
        hashed = hashlib.sha256(verifier.encode()).digest()
        challenge = base64.urlsafe_b64encode(hashed).rstrip(b"=").decode()
        return (
            self._clock() < grant.expires_at
            and form.get("redirect_uri") == query["redirect_uri"]
            and form.get("client_id", self.client_id) == self.client_id
            and 43 <= len(verifier) <= 128
            and challenge == query["code_challenge"]
        )

    def _claims(self, grant: Grant) -> dict[str, Any]:
        now = int(self._clock())
        claims = {"iss": self.url, "aud": self.client_id, "iat": now, "exp": now + TOKEN_S}
        nonce = grant.asked.query.get("nonce")
        return claims | dict(grant.claims) | ({"nonce": nonce} if nonce else {}) | self.claims

    async def _keys(self, _request: web.Request) -> web.Response:
        return web.json_response({"keys": self.published})

    async def _configuration(self, _request: web.Request) -> web.Response:
        return web.json_response(
            {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/auth",
                "token_endpoint": f"{self.url}/token",
                "jwks_uri": f"{self.url}/.well-known/jwks.json",
                "response_types_supported": ["code"],
                "grant_types_supported": ["authorization_code"],
                "scopes_supported": sorted(SCOPES),
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["client_secret_basic"],
                "id_token_signing_alg_values_supported": ["RS256", "ES256"],
            }
        )


def _shared(person: Person, phone: str | None, *, bot_access: bool) -> dict[str, str]:
    """What a person shares, as fields of the page's form."""
    shared = {"user": str(person.user_id), "name": str(person.user["first_name"])}
    shared |= {"username": person.user["username"]} if "username" in person.user else {}
    shared |= {"phone": phone} if phone else {}
    return shared | ({"bot_access": "1"} if bot_access else {})


def new_key(algorithm: str) -> Key:
    """A private key for RS256 or ES256, with an id."""
    parameters: Any = {"kid": secrets.token_hex(8), "use": "sig", "alg": algorithm}
    if algorithm == "RS256":
        return RSAKey.generate_key(2048, parameters)
    return ECKey.generate_key("P-256", parameters)


def public(key: Key) -> dict[str, Any]:
    """The public part of a key, as it is published."""
    return dict(key.as_dict(private=False))
