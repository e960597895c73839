"""Scopes, and the claims that each opens (OpenID Connect Core 1.0, section 5.4)."""

from collections.abc import Iterable
from dataclasses import dataclass

#: The scopes in the order of the documentation, each with its letter in access tokens. Letters never change:
#: tokens that are out name them.
SCOPES = {
    "openid": "o",
    "profile": "p",
    "email": "e",
    "phone": "t",
    "offline_access": "r",
    "notify": "n",
}

#: Claims of `userinfo` by scope.
CLAIMS: dict[str, tuple[str, ...]] = {
    "openid": ("sub",),
    "profile": ("name", "given_name", "preferred_username", "locale", "updated_at"),
    "email": ("email", "email_verified"),
    "phone": ("phone_number", "phone_number_verified"),
    "offline_access": (),
    "notify": (),
}


def known_scopes(words: Iterable[str], allowed: Iterable[str]) -> tuple[str, ...]:
    """Those of the requested scopes that exist and that the client may request, in the usual order.

    Unknown ones are ignored (OpenID Connect Core 1.0, section 3.1.2.1).
    """
    wanted = set(words) & set(allowed)
    return tuple(scope for scope in SCOPES if scope in wanted)


def scope_letters(scopes: Iterable[str]) -> str:
    """The scopes in an access token."""
    return "".join(SCOPES[scope] for scope in scopes)


def scopes_of_letters(letters: str) -> tuple[str, ...]:
    """The scopes of an access token."""
    return tuple(scope for scope, letter in SCOPES.items() if letter in letters)


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """What claims are made of: a subscriber, and the contacts that their messenger verified."""

    first_name: str
    username: str | None
    #: A language tag (BCP 47).
    locale: str
    updated_at_ms: int
    phone: str | None = None
    email: str | None = None


def tells_of_person(scopes: Iterable[str]) -> bool:
    """Whether there are claims of one of the scopes, besides `sub`."""
    return any(CLAIMS[scope] for scope in scopes if scope != "openid")


def claims_of(person: Person, subject: str, scopes: Iterable[str]) -> dict[str, object]:
    """The claims that the scopes open, in `userinfo` and in ID tokens. What the messenger does not know is
    left out, and a contact that is not verified is none."""
    claims: dict[str, object] = {"sub": subject}
    granted = set(scopes)
    if "profile" in granted:
        claims |= _profile(person)
    if "email" in granted and person.email is not None:
        claims |= {"email": person.email, "email_verified": True}
    if "phone" in granted and person.phone is not None:
        claims |= {"phone_number": person.phone, "phone_number_verified": True}
    return claims


def _profile(person: Person) -> dict[str, object]:
    claims: dict[str, object] = {"updated_at": person.updated_at_ms // 1000}
    if person.first_name:
        claims |= {"name": person.first_name, "given_name": person.first_name}
    if person.username:
        claims["preferred_username"] = person.username
    if person.locale:
        claims["locale"] = person.locale
    return claims
