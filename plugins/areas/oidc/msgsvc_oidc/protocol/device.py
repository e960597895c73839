"""Device authorization (RFC 8628): the code that the person types, and the response to the device."""

from typing import Any

from msgsvc_core.kernel.unicode_text import normalized

#: Letters of a user code: without vowels, so that no words arise, and without Y (RFC 8628, section 6.1).
ALPHABET = "BCDFGHJKLMNPQRSTVWXZ"

#: Letters of a user code: 20 ** 8 are 34 bits.
USER_CODE_LENGTH = 8

#: Characters of what may be read as a code.
MAX_TYPED_LENGTH = 64

#: Cyrillic letters that look like those of the alphabet, on the keyboard that the person has at hand.
_LOOK_ALIKES = str.maketrans("ВСНКМРТХ", "BCHKMPTX")


def read_user_code(typed: str) -> str | None:
    """The code that a person typed: in any case, with or without separators (section 6.1). None for what
    can't be a code."""
    normal = normalized("NFKC", typed, most=MAX_TYPED_LENGTH)
    if normal is None:
        return None
    letters = normal.upper().translate(_LOOK_ALIKES)
    code = "".join(letter for letter in letters if letter.isalnum())
    valid = len(code) == USER_CODE_LENGTH and all(letter in ALPHABET for letter in code)
    return code if valid else None


def shown_user_code(code: str) -> str:
    """A code as the device and the page show it.

    >>> shown_user_code("WDJBMJHT")
    'WDJB-MJHT'
    """
    half = USER_CODE_LENGTH // 2
    return f"{code[:half]}-{code[half:]}"


def device_response(
    verification_uri: str, device_code: str, user_code: str, *, expires_in_s: int, interval_s: int
) -> dict[str, Any]:
    """The device authorization response (section 3.2)."""
    shown = shown_user_code(user_code)
    return {
        "device_code": device_code,
        "user_code": shown,
        "verification_uri": verification_uri,
        "verification_uri_complete": f"{verification_uri}?user_code={shown}",
        "expires_in": expires_in_s,
        "interval": interval_s,
    }
