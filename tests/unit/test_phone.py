"""Phone numbers as people and platforms write them."""

import subprocess
import sys

import pytest

from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.kernel.phone import check_country, from_platform, normalized


@pytest.mark.parametrize(
    ("typed", "country", "number"),
    [
        ("+49 (0)151 23456789", None, "+4915123456789"),
        ("0049 151 23456789", None, "+4915123456789"),
        ("0049 (0) 151/234-567-89", None, "+4915123456789"),
        ("+4915123456789", None, "+4915123456789"),
        ("4915123456789", None, "+4915123456789"),
        ("0151 23456789", "DE", "+4915123456789"),
        ("+44 (0)20 7946 0958", "DE", "+442079460958"),
        ("(202) 555-0123", "US", "+12025550123"),
        ("8 (916) 123-45-67", "RU", "+79161234567"),
        # Italy's zero belongs to the number.
        ("+39 06 1234567", None, "+39061234567"),
    ],
)
def test_a_typed_number_is_the_one_that_can_be_called(
    typed: str, country: str | None, number: str
) -> None:
    assert normalized(typed, country) == number
    assert normalized(number) == number


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("0151 23456789", "with its country code"),
        ("+999 123456789", "a country code that exists"),
        ("+1 202 555", "too few digits"),
        ("+1 202 555 01234", "too many digits"),
        ("+49", "with its country code"),
        ("", "with its country code"),
        ("+49 151 CALL-ME", "with its country code"),
        ("+1 202 555 0123 ext. 7", "with its country code"),
        ("+4915123456789" + " " * 64, "with its country code"),
        ("+49151234\u0665\u0666\u0667\u0668\u0669", "with its country code"),
    ],
)
def test_a_number_that_can_not_be_is_refused_with_the_reason(typed: str, why: str) -> None:
    with pytest.raises(InvalidValue, match=why) as refused:
        normalized(typed)

    assert typed == "" or typed not in str(refused.value)


@pytest.mark.parametrize("given", ["+12025550123", "12025550123", "0012025550123"])
def test_a_platforms_number_has_its_country_code(given: str) -> None:
    assert from_platform(given) == "+12025550123"


@pytest.mark.parametrize("given", ["", "Shop", "72000", "+1202555012345678"])
def test_a_platforms_name_is_no_number(given: str) -> None:
    with pytest.raises(InvalidValue):
        from_platform(given)


def test_a_default_country_is_one_that_has_numbers() -> None:
    assert check_country("de") == "DE"
    for wrong in ("D", "DEU", "XX", "Germany", "ß1"):
        with pytest.raises(InvalidValue, match="two letters"):
            check_country(wrong)


def test_sending_and_starting_load_no_numbering_plans() -> None:
    program = (
        "import sys, msgsvc_core.service, msgsvc_sms.plugin, msgsvc_whatsapp.plugin;"
        "from msgsvc_core.kernel.phone import from_platform; from_platform('+12025550123');"
        "print('phonenumbers' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )

    assert done.stdout.strip() == "False", done.stderr
