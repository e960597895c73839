"""Passwords: argon2id with OWASP's parameters, in threads, without timing side channels."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from msgsvc_core.kernel.errors import Unavailable, ValidationFailed
from msgsvc_core.kernel.unicode_text import normalized
from msgsvc_dashboard.accounts.common_passwords import COMMON
from msgsvc_dashboard.settings import AccountSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from argon2 import PasswordHasher

T = TypeVar("T")

#: Characters of a password (NIST SP 800-63B asks for at least 8, and to take 64).
SHORTEST, LONGEST = 10, 128

#: Passwords that are looked at at once: each takes a core, and its memory.
AT_ONCE = 2

#: Those that may wait for it; a flood is told to come back instead of filling the memory.
MOST_WAITING = 64

#: Seconds after which who was sent away may come back.
BUSY_S = 5


def check_password(password: str, email: str) -> str:
    """The password in normalized form. Raises `ValidationFailed` for one that is easily guessed."""
    text = normal(password)
    if text is not None and len(text) < SHORTEST:
        raise ValidationFailed(
            "must have at least {minimum} characters", field="password", minimum=SHORTEST
        )
    if text is None or len(text) > LONGEST:
        raise ValidationFailed(
            "must have at most {limit} characters", field="password", limit=LONGEST
        )
    small = text.casefold()
    if small in COMMON or len(set(small)) < 4:
        raise ValidationFailed(
            "is one of those that are guessed first; take another", field="password"
        )
    if small in {email.casefold(), email.casefold().partition("@")[0]}:
        raise ValidationFailed("must not be the email", field="password")
    return text


def normal(password: str) -> str | None:
    """Unicode normalization: some keyboards enter an accent as a separate character. None for what is longer
    than any password."""
    return normalized("NFKC", password)


class Passwords:
    """Hashes and verifies passwords, a few concurrently, never in the event loop."""

    def __init__(self, settings: AccountSettings) -> None:
        self._settings = settings
        self._waiting = 0

    async def hashed(self, password: str) -> str:
        """What is kept of a password that `check_password` took. Raises `Unavailable`."""
        return await self._run(lambda: self._hasher.hash(password))

    async def fits(self, kept: str | None, password: str) -> bool:
        """Whether it is that password. Takes as long where there is none to compare with, so that the
        time does not tell which emails have accounts. Raises `Unavailable`."""
        text = normal(password)
        if text is None or len(text) > LONGEST:
            text, kept = "", None
        return await self._run(lambda: self._fits(kept, text))

    def is_dated(self, kept: str) -> bool:
        """Whether the parameters have changed since it was hashed."""
        return self._hasher.check_needs_rehash(kept)

    def _fits(self, kept: str | None, password: str) -> bool:
        from argon2.exceptions import VerifyMismatchError  # noqa: PLC0415 - loaded with the first

        try:
            return self._hasher.verify(kept or self._decoy, password) and kept is not None
        except VerifyMismatchError:
            return False

    async def _run(self, work: "Callable[[], T]") -> T:
        if self._waiting >= MOST_WAITING:
            raise Unavailable("too many sign-ins at once", retry_after_s=BUSY_S)
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            self._waiting -= 1

    @cached_property
    def _hasher(self) -> "PasswordHasher":
        # A library in C, which a process needs that somebody signs in to.
        from argon2 import PasswordHasher  # noqa: PLC0415 - see above

        return PasswordHasher(
            time_cost=self._settings.password_passes,
            memory_cost=self._settings.password_memory_kib,
            parallelism=1,
        )

    @cached_property
    def _decoy(self) -> str:
        return self._hasher.hash("nobody's password")

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(AT_ONCE, thread_name_prefix="passwords")
