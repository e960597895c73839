"""A Django site that signs people in by `social-auth-core`, as many do: Sentry, Weblate, edX."""

from typing import Any

import django
from conversation import ask, config, play
from django.conf import settings
from django.core.management import call_command
from django.http import HttpRequest, JsonResponse
from django.test import Client
from django.urls import include, path

SITE_HOST = config["site_host"]

settings.configure(
    SECRET_KEY="a-key-for-tests-only",
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF=__name__,
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    INSTALLED_APPS=[
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.sessions",
        "social_django",
    ],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
    ],
    AUTHENTICATION_BACKENDS=["social_core.backends.open_id_connect.OpenIdConnectAuth"],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    LOGIN_REDIRECT_URL="/me",
    SOCIAL_AUTH_OIDC_OIDC_ENDPOINT=config["issuer"],
    SOCIAL_AUTH_OIDC_KEY=config["client_id"],
    SOCIAL_AUTH_OIDC_SECRET=config["client_secret"],
    SOCIAL_AUTH_OIDC_TOKEN_ENDPOINT_AUTH_METHOD=config["auth_method"],
    SOCIAL_AUTH_OIDC_USE_PKCE=True,
    SOCIAL_AUTH_OIDC_SCOPE=["phone"],
)
django.setup()


def me(request: HttpRequest) -> JsonResponse:
    """Who is signed in, with the account that they signed in by."""
    user = request.user
    link = user.social_auth.get()
    return JsonResponse(
        {
            "username": user.username,
            "first_name": user.first_name,
            "provider": link.provider,
            "uid": link.uid,
            "extra": sorted(link.extra_data),
        }
    )


urlpatterns = [path("", include("social_django.urls", namespace="social")), path("me", me)]


def _signed_in(browser: Client) -> Any:
    sent = browser.post("/login/oidc/")
    answer = ask("sign_in", url=sent.headers["location"])
    done = browser.get(answer)
    assert done.status_code == 302, done.content
    return browser.get(done.headers["location"]).json()


def code() -> Any:
    """A person signs in twice, in two browsers."""
    return [_signed_in(Client(headers={"host": SITE_HOST})) for _ in range(2)]


call_command("migrate", verbosity=0)
play({"code": code})
