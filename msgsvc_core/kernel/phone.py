"""Parses and normalizes phone numbers: `+` and digits (ITU-T E.164).

`phonenumbers` is loaded for the first number that somebody typed: it takes a tenth of a second. Numbers that
platforms name are not parsed, nor are those that were normalized before.
"""

import re

from msgsvc_core.kernel.errors import InvalidValue

#: `+`, a country code, which has no leading zero, and at most 15 digits in all (E.164, section 6.2).
#: No subscriber number is shorter than 7 digits with its country code.
_INTERNATIONAL = re.compile(r"\+[1-9][0-9]{6,14}")

#: What people and platforms put between digits.
_SEPARATORS = re.compile(r"[\s().\-/\u00a0\u2010-\u2015]+")

#: Characters of a number as people type it, with separators.
MAX_TYPED = 64

_COUNTRY = re.compile(r"[A-Z]{2}")


def normalized(text: str, country: str | None = None) -> str:
    """The number that a person typed: `+49 (0)151 23456789` and `0049 151 23456789` are `+4915123456789`.

    `country` is the country, by ISO 3166-1, of numbers without a country code; without it, one that does not
    begin with 0 is taken as international. Raises `InvalidValue`, which does not repeat the text, for what is
    no number or can't be one in its country. Whether a possible number was ever assigned is not checked:
    numbering plans change more often than programs.
    """
    digits = _SEPARATORS.sub("", text) if len(text) <= MAX_TYPED else ""
    if digits.startswith("00"):
        digits = f"+{digits[2:]}"
    elif not digits.startswith(("+", "0")) and country is None:
        digits = f"+{digits}"
    if not re.fullmatch(r"\+?[0-9]+", digits) or (digits.startswith("0") and country is None):
        raise _not_international()
    import phonenumbers  # noqa: PLC0415 - its numbering plans are large, and few processes need them

    try:
        number = phonenumbers.parse(digits, country)
    except phonenumbers.NumberParseException as error:
        if error.error_type == phonenumbers.NumberParseException.INVALID_COUNTRY_CODE:
            raise InvalidValue("must begin with a country code that exists") from None
        raise _not_international() from None
    reason = phonenumbers.is_possible_number_with_reason(number)
    result = phonenumbers.ValidationResult
    if reason in {result.TOO_SHORT, result.IS_POSSIBLE_LOCAL_ONLY}:
        raise InvalidValue("has too few digits for a phone number of its country")
    if reason in {result.TOO_LONG, result.INVALID_LENGTH}:
        raise InvalidValue("has too many digits for a phone number of its country")
    found = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)
    if reason != result.IS_POSSIBLE or not _INTERNATIONAL.fullmatch(found):
        raise _not_international()
    return found


def from_platform(text: str) -> str:
    """A number as a platform names it, with its country code: with `+`, `00` or neither before it.

    Raises `InvalidValue`.
    """
    digits = _SEPARATORS.sub("", text).removeprefix("+").removeprefix("00")
    if not _INTERNATIONAL.fullmatch(f"+{digits}"):
        raise _not_international()
    return f"+{digits}"


def check_country(country: str) -> str:
    """The code of a country that has phone numbers, in upper case. Raises `InvalidValue`."""
    import phonenumbers  # noqa: PLC0415 - its numbering plans are large, and few processes need them

    country = country.upper()
    if not _COUNTRY.fullmatch(country) or country not in phonenumbers.SUPPORTED_REGIONS:
        raise InvalidValue("must be a country by its two letters (ISO 3166-1), as DE")
    return country


def _not_international() -> InvalidValue:
    return InvalidValue("must be a phone number with its country code, as +12025550123")
