"""Webhook signatures: ours and those of Standard Webhooks, and what does not verify."""

import base64
import hashlib
import hmac

import pytest

from msgsvc_core.security.signing import new_secret, sign, standard_headers, verify

SECRET = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
OLD_SECRET = "whsec_YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXoxMjM0NTY="
BODY = '{"event":"form.submitted","data":{"name":"Zoë"}}'.encode()
TIME = 1_795_167_000


def test_signature_is_the_hmac_of_time_dot_body_under_the_whole_secret_text():
    expected = hmac.new(SECRET.encode(), b"1795167000." + BODY, hashlib.sha256).hexdigest()

    assert sign(BODY, [SECRET], TIME) == f"t=1795167000,v1={expected}"


def test_known_vector_stays_the_same_for_receivers_in_other_languages():
    # printf '1795167000.{}' | openssl dgst -sha256 -hmac "$SECRET"
    digest = "3134b9b1f45379f2ef5d3e1d7164ba9d83f5fe5d26ef1d2224b845887a24a82a"

    assert sign(b"{}", [SECRET], TIME) == f"t=1795167000,v1={digest}"


def test_rotation_signs_with_every_secret_and_any_of_them_verifies():
    header = sign(BODY, [SECRET, OLD_SECRET], TIME)

    assert header.count("v1=") == 2
    assert verify(BODY, header, [SECRET])
    assert verify(BODY, header, [OLD_SECRET])
    assert verify(BODY, sign(BODY, [OLD_SECRET], TIME), [SECRET, OLD_SECRET])


@pytest.mark.parametrize("timestamp", [0, 1, TIME - 86_400 * 365, TIME + 86_400 * 365])
def test_age_of_the_timestamp_never_matters(timestamp: int):
    assert verify(BODY, sign(BODY, [SECRET], timestamp), [SECRET])


def test_changed_body_does_not_verify():
    assert not verify(BODY + b" ", sign(BODY, [SECRET], TIME), [SECRET])


def test_changed_timestamp_does_not_verify():
    header = sign(BODY, [SECRET], TIME)

    assert not verify(BODY, header.replace("t=1795167000", "t=1795167001"), [SECRET])


def test_other_secret_does_not_verify():
    assert not verify(BODY, sign(BODY, [OLD_SECRET], TIME), [SECRET])


def test_unknown_schemes_and_spaces_are_skipped():
    header = sign(BODY, [SECRET], TIME).replace(",", " , v0=00, v2=zz,x, ")

    assert verify(BODY, header, [SECRET])


def test_signature_under_another_scheme_name_does_not_count():
    header = sign(BODY, [SECRET], TIME)

    assert not verify(BODY, header.replace("v1=", "v0="), [SECRET])


def test_upper_case_digits_are_not_the_signature():
    time, _, digits = sign(BODY, [SECRET], TIME).partition(",v1=")

    assert not verify(BODY, f"{time},v1={digits.upper()}", [SECRET])


@pytest.mark.parametrize(
    "header",
    [
        "",
        ",",
        "=",
        "t",
        "t=",
        "v1=",
        "t=1795167000",
        "t=1795167000,v1",
        "t=1795167000,v1=",
        "t=abc,v1=00",
        "t=-1,v1=00",
        "t=１,v1=00",  # full-width digit
        "t=²,v1=00",
        "t=1795167000,v1=é",
        "t=1795167000,v1=\ud800",
        "t=1795167000,v1=" + "0" * 100_000,
        "\x00",
    ],
)
def test_malformed_header_does_not_verify(header: str):
    assert verify(BODY, header, [SECRET]) is False


def test_two_timestamps_do_not_verify():
    header = sign(BODY, [SECRET], TIME)

    assert not verify(BODY, f"t=1,{header}", [SECRET])
    assert not verify(BODY, f"{header},t=1", [SECRET])


def test_nothing_verifies_without_secrets():
    assert not verify(BODY, sign(BODY, [SECRET], TIME), [])


def test_signing_without_secrets_is_refused():
    with pytest.raises(ValueError, match="at least one secret"):
        sign(BODY, [], TIME)
    with pytest.raises(ValueError, match="at least one secret"):
        standard_headers("whd_1", BODY, [], TIME)


def test_new_secret_is_the_prefix_and_base64_of_32_bytes():
    secret = new_secret()

    assert secret.startswith("whsec_")
    assert len(base64.b64decode(secret.removeprefix("whsec_"), validate=True)) == 32
    assert secret != new_secret()


def test_standard_headers_sign_id_time_and_body_with_the_decoded_secret():
    key = b"01234567890123456789012345678901"
    signed = b"whd_1.1795167000." + BODY
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()

    assert standard_headers("whd_1", BODY, [SECRET], TIME) == {
        "webhook-id": "whd_1",
        "webhook-timestamp": "1795167000",
        "webhook-signature": f"v1,{expected}",
    }


def test_published_vector_of_standard_webhooks():
    # From the test suite of the Standard Webhooks libraries.
    headers = standard_headers(
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        b'{"test": 2432232314}',
        ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
        1_614_265_330,
    )

    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_standard_signatures_of_a_rotation_are_separated_by_a_space():
    both = standard_headers("whd_1", BODY, [SECRET, OLD_SECRET], TIME)["webhook-signature"]
    first = standard_headers("whd_1", BODY, [SECRET], TIME)["webhook-signature"]
    second = standard_headers("whd_1", BODY, [OLD_SECRET], TIME)["webhook-signature"]

    assert both == f"{first} {second}"


@pytest.mark.parametrize("secret", ["MDEy", "whsec_***", "whsec_MDE"])
def test_secret_of_another_form_is_refused(secret: str):
    with pytest.raises(ValueError, match=r"whsec_|base64|padding"):
        standard_headers("whd_1", BODY, [secret], TIME)
