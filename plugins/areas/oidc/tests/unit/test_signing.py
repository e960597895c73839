"""Signatures by each algorithm, and which are taken."""

import pytest

from msgsvc_oidc.protocol.clients import SigningAlg
from msgsvc_oidc.protocol.keys import Signer, new_private_jwk, public_jwk, verified_claims

CLAIMS = {"sub": "sub_1"}


@pytest.mark.parametrize("alg", ["RS256", "ES256", "EdDSA"])
def test_what_a_key_signs_is_verified_by_its_public_half(alg: SigningAlg) -> None:
    private = new_private_jwk(alg, "key_1")
    public = public_jwk(private)

    token = Signer(alg, "key_1", private).sign(CLAIMS)

    assert "d" not in public
    assert verified_claims(token, [public], [alg]) == CLAIMS


def test_an_algorithm_that_is_not_on_the_list_is_not_taken() -> None:
    private = new_private_jwk("ES256", "key_1")
    token = Signer("ES256", "key_1", private).sign(CLAIMS)

    assert verified_claims(token, [public_jwk(private)], ["RS256"]) is None


def test_a_signature_by_another_key_of_the_same_id_is_not_taken() -> None:
    private, other = new_private_jwk("EdDSA", "key_1"), new_private_jwk("EdDSA", "key_1")
    token = Signer("EdDSA", "key_1", private).sign(CLAIMS)

    assert verified_claims(token, [public_jwk(other)], ["EdDSA"]) is None
