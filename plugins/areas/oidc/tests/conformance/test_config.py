"""The plan `oidcc-config-certification-test-plan` of the OpenID Foundation's conformance suite: the
provider's metadata and keys (OpenID Connect Discovery 1.0, sections 3 and 4).

The suite itself was not run; see `test_basic.py`.
"""

import pytest
from joserfc.jwk import KeySet

#: Members that a document must have (section 3).
REQUIRED = {
    "issuer",
    "authorization_endpoint",
    "token_endpoint",
    "userinfo_endpoint",
    "jwks_uri",
    "response_types_supported",
    "subject_types_supported",
    "id_token_signing_alg_values_supported",
}


@pytest.fixture
async def metadata(ann):
    response = await ann.http.get(f"{ann.issuer}/.well-known/openid-configuration")
    assert response.status_code == 200
    assert response.headers["Content-Type"] == "application/json"
    return response.json()


class TestConfig:
    async def test_oidcc_discovery_endpoint_verification(self, ann, metadata):
        assert metadata.keys() >= REQUIRED
        assert metadata["issuer"] == f"http://msgsvc.test{ann.issuer}"
        assert {"code"} <= set(metadata["response_types_supported"])
        assert set(metadata["subject_types_supported"]) <= {"public", "pairwise"}
        assert "RS256" in metadata["id_token_signing_alg_values_supported"]
        assert "openid" in metadata["scopes_supported"]
        assert {"sub", "iss"} <= set(metadata["claims_supported"])
        assert "authorization_code" in metadata["grant_types_supported"]
        assert metadata["request_uri_parameter_supported"] is False
        assert metadata["claims_parameter_supported"] is False
        assert None not in metadata.values()
        assert [] not in metadata.values()

    async def test_every_endpoint_of_the_metadata_is_there(self, ann, metadata):
        missing = []
        for name, url in metadata.items():
            if name.endswith(("_endpoint", "jwks_uri")):
                path = url.removeprefix("http://msgsvc.test")
                found = {
                    method: (await ann.http.request(method, path)).status_code
                    for method in ("GET", "POST")
                }
                if set(found.values()) <= {404, 405}:
                    missing.append((name, found))

        assert not missing

    async def test_the_keys_are_public_and_named(self, ann, rp, metadata):
        await ann.tokens(rp)
        found = (await ann.http.get(metadata["jwks_uri"])).json()
        keys = KeySet.import_key_set(found)
        names = [key["kid"] for key in found["keys"]]

        assert len(set(names)) == len(names) >= 1
        assert {key["use"] for key in found["keys"]} == {"sig"}
        assert not any(key.is_private for key in keys.keys)
