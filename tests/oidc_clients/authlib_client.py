"""A Starlette site with Authlib's registry, and Authlib's client of httpx2 for what a back end does."""

import asyncio
from typing import Any

import httpx2
from authlib.integrations.httpx_client import OAuth2Client
from authlib.integrations.starlette_client import OAuth
from authlib.oauth2.rfc7523 import PrivateKeyJWT
from conversation import ask, config, play
from joserfc.jwk import ECKey
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

SITE = config["redirect_uri"].removesuffix("/callback")
METADATA = f"{config['issuer']}/.well-known/openid-configuration"

# Offline access is only given after consent (OpenID Connect Core 1.0, section 11).
PARAMETERS = {"prompt": "consent"} if "offline_access" in config["scope"] else {}

oauth = OAuth()
oauth.register(
    "messenger",
    client_id=config["client_id"],
    client_secret=config["client_secret"] or None,
    server_metadata_url=METADATA,
    client_kwargs={
        "scope": config["scope"],
        "code_challenge_method": "S256",
        "token_endpoint_auth_method": config["auth_method"],
    },
)


async def login(request: Request) -> Response:
    answer: Response = await oauth.messenger.authorize_redirect(
        request, config["redirect_uri"], **PARAMETERS
    )
    return answer


async def callback(request: Request) -> Response:
    token = await oauth.messenger.authorize_access_token(request)
    user_info = await oauth.messenger.userinfo(token=token)
    # `userinfo` in the token are the claims of the ID token, which the library has checked.
    return JSONResponse({"claims": token["userinfo"], "user_info": user_info})


site = Starlette(
    routes=[Route("/login", login), Route("/callback", callback)],
    middleware=[Middleware(SessionMiddleware, secret_key="a-key-for-tests-only")],
)


async def _sign_in_at_site() -> Any:
    transport = httpx2.ASGITransport(app=site)
    async with httpx2.AsyncClient(transport=transport, base_url=SITE) as browser:
        sent = await browser.get("/login")
        answer = ask("sign_in", url=sent.headers["location"])
        page = await browser.get(answer)
    return page.json()


def code() -> Any:
    """A person signs in at the site."""
    return asyncio.run(_sign_in_at_site())


def back_end() -> Any:
    """What is done with tokens after the sign-in: refresh, introspection, revocation."""
    metadata = httpx2.get(METADATA).json()
    method: Any = config["auth_method"]
    secret = config["client_secret"]
    if method == "private_key_jwt":
        secret = ECKey.import_key(config["private_key"])
        method = PrivateKeyJWT(metadata["token_endpoint"], headers={"kid": secret.kid}, alg="ES256")
    with OAuth2Client(
        config["client_id"],
        secret,
        token_endpoint_auth_method=method,
        revocation_endpoint_auth_method=method,
        scope=config["scope"],
        redirect_uri=config["redirect_uri"],
        code_challenge_method="S256",
    ) as client:
        verifier = "v" * 43
        url, state = client.create_authorization_url(
            metadata["authorization_endpoint"], code_verifier=verifier, **PARAMETERS
        )
        token = client.fetch_token(
            metadata["token_endpoint"],
            authorization_response=ask("sign_in", url=url),
            state=state,
            code_verifier=verifier,
        )
        fresh = client.refresh_token(metadata["token_endpoint"], token["refresh_token"])
        user_info = client.get(metadata["userinfo_endpoint"]).json()
        # Introspection is for clients that can prove who they are (RFC 7662, section 2.1).
        looked = None
        if config["auth_method"] != "none":
            looked = client.introspect_token(
                metadata["introspection_endpoint"], fresh["access_token"], "access_token"
            ).json()
        revoked = client.revoke_token(
            metadata["revocation_endpoint"], fresh["refresh_token"], "refresh_token"
        )
    return {
        "token": token,
        "fresh": fresh,
        "user_info": user_info,
        "introspection": looked,
        "revoked": revoked.status_code,
    }


play({"code": code, "back_end": back_end})
