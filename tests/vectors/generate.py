"""Writes webhooks.json: what a verifier of our webhooks, in any language, has to accept and to refuse.

    python tests/vectors/generate.py

Signs by itself and not with `msgsvc_core.security.signing`, which is one of the verifiers checked.
"""

import base64
import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).with_name("webhooks.json")

SECRET = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
OLD_SECRET = "whsec_YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXoxMjM0NTY="
OTHER_SECRET = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

BODY = b'{"event":"subscription.created","data":{"first_name":"Ann"}}'
TIME = "1795167000"
ID = "whd_0351YqzDNAVpgdkbBhly0q"

#: How they are named where a case is told; none holds a character that JSON could change on the way.
BODIES = {
    "an ASCII body": BODY,
    "a body in UTF-8": '{"event":"form.submitted","data":{"name":"Zoë, Привет, 你好 👋"}}'.encode(),
    "a body with escapes": b'{"event":"event.tracked","data":{"name":"\\u041f\\u0000\\/\\u2028"}}',
    "a body with spaces and newlines": b' {\r\n\t"event" : "button.clicked",\n "data": { } }\n\n',
    "a body with a byte order mark": b'\xef\xbb\xbf{"event":"otp.sent","data":{}}',
    "a body with numbers that re-writing changes": b'{"event":"e","data":{"a":1.0,"b":1e2,"c":1E+2}}',
    "a body with a doubled name": b'{"event":"e","event":"f","data":{}}',
    "a body that is not UTF-8": b"\xff\xfe\x00not text",
    "an empty body": b"",
    "a large body": b'{"event":"e","data":"' + b"x" * 5_000 + b'"}',
}


def hex_of(secret: str, body: bytes = BODY, time: str = TIME) -> str:
    return hmac.new(secret.encode(), time.encode() + b"." + body, hashlib.sha256).hexdigest()


def base64_of(secret: str, body: bytes = BODY, time: str = TIME, delivery_id: str = ID) -> str:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{delivery_id}.{time}.".encode() + body
    return base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def case(
    about: str,
    valid: bool,
    headers: dict[str, str],
    body: bytes = BODY,
    secrets: tuple[str, ...] = (SECRET,),
) -> dict[str, Any]:
    return {
        "about": about,
        "valid": valid,
        "headers": headers,
        "body": base64.b64encode(body).decode(),
        "secrets": list(secrets),
    }


def own(value: str | None, name: str = "X-Service-Signature") -> dict[str, str]:
    """Headers of a delivery in the form of decision 0075."""
    rest = {"X-Service-Timestamp": TIME, "X-Service-Delivery-Id": ID, "X-Service-Event": "e"}
    return rest if value is None else {name: value, **rest}


def standard(signature: str | None, time: str | None = TIME, delivery_id: str | None = ID) -> dict:
    """Headers of a delivery in the form of Standard Webhooks."""
    named = {
        "webhook-id": delivery_id,
        "webhook-timestamp": time,
        "webhook-signature": signature,
    }
    return {name: value for name, value in named.items() if value is not None}


def own_cases() -> list[dict[str, Any]]:
    good, old = hex_of(SECRET), hex_of(OLD_SECRET)
    signed = f"t={TIME},v1={good}"
    cases = [
        case(about, True, own(f"t={TIME},v1={hex_of(SECRET, body)}"), body)
        for about, body in BODIES.items()
    ]
    cases += [
        case("names of headers in lower case", True, own(signed, "x-service-signature")),
        case("names of headers in upper case", True, own(signed, "X-SERVICE-SIGNATURE")),
        case("in a rotation, the new secret", True, own(f"{signed},v1={old}")),
        case("in a rotation, the old secret", True, own(f"{signed},v1={old}"), secrets=(OLD_SECRET,)),
        case("the last of five signatures", True, own(f"t={TIME}{f',v1={old}' * 4},v1={good}")),
        case("the second of two secrets", True, own(signed), secrets=(OTHER_SECRET, SECRET)),
        case("a timestamp of years ago", True, own(f"t=1,v1={hex_of(SECRET, time='1')}")),
        case("a timestamp years ahead", True, own(f"t=9999999999,v1={hex_of(SECRET, time='9999999999')}")),
        case("a timestamp with zeros before it", True, own(f"t=007,v1={hex_of(SECRET, time='007')}")),
        case("spaces and tabs around the parts", True, own(f" t={TIME} , \tv1={good} ")),
        case("schemes that are not known", True, own(f"t={TIME},v0=00,v2={good},x,v1={good},=")),
        case("the time after the signature", True, own(f"v1={good},t={TIME}")),
        case("X-Service-Timestamp differs, which nobody looks at", True,
             {**own(signed), "X-Service-Timestamp": "1"}),
        case("a byte added to the body", False, own(signed), BODY + b" "),
        case("a byte of the body changed", False, own(signed), BODY.replace(b"Ann", b"Eve")),
        case("no body", False, own(signed), b""),
        case("the body parsed and written again", False, own(signed),
             json.dumps(json.loads(BODY), indent=1).encode()),
        case("the timestamp changed", False, own(signed.replace(TIME, "1795167001"))),
        case("the timestamp written otherwise", False, own(signed.replace(TIME, "0" + TIME))),
        case("another secret", False, own(signed), secrets=(OTHER_SECRET,)),
        case("two other secrets", False, own(signed), secrets=(OTHER_SECRET, OLD_SECRET)),
        case("no secrets", False, own(signed), secrets=()),
        case("an empty secret, with which anybody signs", False,
             own(f"t={TIME},v1={hex_of('')}"), secrets=("",)),
        case("an empty secret beside a good one", False,
             own(f"t={TIME},v1={hex_of('')}"), secrets=(SECRET, "")),
        case("a secret of nothing but its prefix, with which anybody signs", False,
             own(f"t={TIME},v1={hex_of('whsec_')}"), secrets=("whsec_",)),
        case("a secret that was cut off", False,
             own(f"t={TIME},v1={hex_of(SECRET[:18])}"), secrets=(SECRET[:18],)),
        case("a secret that was cut off beside a good one", False,
             own(f"t={TIME},v1={hex_of(SECRET[:18])}"), secrets=(SECRET, SECRET[:18])),
        case("a secret without its prefix, signed with", False,
             own(f"t={TIME},v1={hex_of(SECRET.removeprefix('whsec_'))}"),
             secrets=(SECRET.removeprefix("whsec_"),)),
        case("the secret without its prefix", False, own(signed),
             secrets=(SECRET.removeprefix("whsec_"),)),
        case("signed with the decoded secret", False, own(f"t={TIME},v1=" + hmac.new(
            base64.b64decode(SECRET.removeprefix("whsec_")), f"{TIME}.".encode() + BODY, "sha256"
        ).hexdigest())),
        case("the body signed without the time", False,
             own(f"t={TIME},v1={hmac.new(SECRET.encode(), BODY, 'sha256').hexdigest()}")),
        case("the header is missing", False, own(None)),
        case("the header is empty", False, own("")),
        case("the header came twice, and was joined", False, own(f"{signed}, {signed}")),
        case("no time", False, own(f"v1={good}")),
        case("an empty time", False, own(f"t=,v1={hex_of(SECRET, time='')}")),
        case("two times", False, own(f"t={TIME},{signed}")),
        case("a time that is no number", False, own(f"t=now,v1={hex_of(SECRET, time='now')}")),
        case("a negative time", False, own(f"t=-5,v1={hex_of(SECRET, time='-5')}")),
        case("a time with a fraction", False, own(f"t=1.5,v1={hex_of(SECRET, time='1.5')}")),
        case("a time in full-width digits", False, own(f"t=１,v1={hex_of(SECRET, time='１')}")),
        case("no signature", False, own(f"t={TIME}")),
        case("an empty signature", False, own(f"t={TIME},v1=")),
        case("the signature without its name", False, own(f"t={TIME},{good}")),
        case("the signature in upper case", False, own(f"t={TIME},v1={good.upper()}")),
        case("the signature in base64", False,
             own(f"t={TIME},v1={base64.b64encode(bytes.fromhex(good)).decode()}")),
        case("the signature cut short", False, own(f"t={TIME},v1={good[:-1]}")),
        case("the signature with a digit more", False, own(f"t={TIME},v1={good}0")),
        case("the last digit of the signature changed", False,
             own(f"t={TIME},v1={good[:-1]}{'0' if good[-1] != '0' else '1'}")),
        case("a space before the signature's digits", False, own(f"t={TIME},v1= {good}")),
        case("the signature under the name v0", False, own(f"t={TIME},v0={good}")),
        case("the signature under the name V1", False, own(f"t={TIME},V1={good}")),
        case("the parts separated by semicolons", False, own(f"t={TIME};v1={good}")),
        case("letters beyond ASCII", False, own(f"t={TIME},v1=é{good[1:]}")),
        case("the header of Standard Webhooks under our name", False,
             own(f"v1,{base64_of(SECRET)}")),
    ]  # fmt: skip
    return cases


def standard_cases() -> list[dict[str, Any]]:
    good, old = base64_of(SECRET), base64_of(OLD_SECRET)
    signed = f"v1,{good}"
    cases = [
        case(about, True, standard(f"v1,{base64_of(SECRET, body)}"), body)
        for about, body in BODIES.items()
    ]
    cases += [
        case("the vector that Standard Webhooks has published", True, standard(
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", "1614265330",
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
        ), b'{"test": 2432232314}', ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",)),
        case("names of headers in another case", True,
             {name.title(): value for name, value in standard(signed).items()}),
        case("in a rotation, the new secret", True, standard(f"{signed} v1,{old}")),
        case("in a rotation, the old secret", True, standard(f"{signed} v1,{old}"),
             secrets=(OLD_SECRET,)),
        case("a scheme that is not known", True, standard(f"v1a,{old} {signed}")),
        case("a timestamp of years ago", True, standard(f"v1,{base64_of(SECRET, time='1')}", "1")),
        case("a byte of the body changed", False, standard(signed), BODY.replace(b"Ann", b"Eve")),
        case("the id changed", False, standard(signed, delivery_id=ID[:-1] + "r")),
        case("the timestamp changed", False, standard(signed, "1795167001")),
        case("another secret", False, standard(signed), secrets=(OTHER_SECRET,)),
        case("no secrets", False, standard(signed), secrets=()),
        case("an empty secret", False, standard(signed), secrets=("",)),
        case("a secret of nothing but its prefix, with which anybody signs", False,
             standard(f"v1,{base64_of('whsec_')}"), secrets=("whsec_",)),
        case("a secret that was cut off", False,
             standard(f"v1,{base64_of(SECRET[:18])}"), secrets=(SECRET[:18],)),
        case("a secret with signs that are no base64", False,
             standard(signed), secrets=(SECRET[:20] + "!!!!" + SECRET[20:],)),
        case("the secret without its prefix", False,
             standard(signed), secrets=(SECRET.removeprefix("whsec_"),)),
        case("no id", False, standard(f"v1,{base64_of(SECRET, delivery_id='')}", delivery_id=None)),
        case("no timestamp", False, standard(f"v1,{base64_of(SECRET, time='')}", None)),
        case("a timestamp that is no number", False,
             standard(f"v1,{base64_of(SECRET, time='now')}", "now")),
        case("no signature", False, standard(None)),
        case("an empty signature", False, standard("v1,")),
        case("the signature without its scheme", False, standard(good)),
        case("the signature under another scheme", False, standard(f"v2,{good}")),
        case("the signature in hex", False,
             standard(f"v1,{base64.b64decode(good).hex()}")),
        case("the signature without its padding", False, standard(signed.rstrip("="))),
    ]  # fmt: skip
    return cases


def render() -> str:
    """The file: `signature` has the cases of X-Service-Signature, `standard` of webhook-signature."""
    vectors = {
        "about": "Requests to accept (valid) or refuse, written by generate.py. Bodies are in base64.",
        "signature": own_cases(),
        "standard": standard_cases(),
    }
    return json.dumps(vectors, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    VECTORS.write_text(render(), encoding="utf-8")
