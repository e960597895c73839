"""Backchannel requests: what a request asks for, and what is stored of it."""

from dataclasses import replace

import pytest

from msgsvc_devkit.core import MemoryCore
from msgsvc_oidc.ciba.people import HintedPeople
from msgsvc_oidc.ciba.polling import BackchannelGrants
from msgsvc_oidc.ciba.questions import BackchannelQuestions
from msgsvc_oidc.ciba.service import BackchannelRequests
from msgsvc_oidc.composition.records import Records
from msgsvc_oidc.protocol.ciba import BackchannelRequest, backchannel_response, read_request
from msgsvc_oidc.protocol.errors import OAuthError
from msgsvc_oidc.protocol.parameters import Parameters
from msgsvc_oidc.settings import OidcSettings
from plugins.areas.oidc.tests.unit.provider import CLIENT, polls_of

REQUEST = BackchannelRequest(
    scopes=("openid",),
    hint_kind="login_hint",
    hint="sub_1",
    binding_message="Pay 20 EUR",
    requested_expiry_s=None,
    number_matching=False,
)


def parameters(**given: str) -> Parameters:
    return Parameters([("scope", "openid"), *given.items()])


def test_a_request_is_read() -> None:
    found = read_request(
        parameters(
            login_hint="sub_1", binding_message="Pay 20 EUR", acr_values="urn:msgsvc:acr:number"
        ),
        CLIENT,
    )

    assert found == replace(REQUEST, number_matching=True)


def test_a_client_that_always_asks_for_a_number_does_here_too() -> None:
    client = replace(CLIENT, number_matching=True)

    assert read_request(parameters(login_hint="sub_1"), client).number_matching


@pytest.mark.parametrize("message", ["x" * 100, "Overweisung №7 · 20 €", "支払い 🙂"])
def test_a_message_is_one_line_of_any_language(message: str) -> None:
    found = read_request(parameters(login_hint="sub_1", binding_message=message), CLIENT)

    assert found.binding_message == message


@pytest.mark.parametrize(
    "hints",
    [
        {},
        {"login_hint": "a", "id_token_hint": "b"},
        {"login_hint": "a", "login_hint_token": "b"},
        {"login_hint_token": "b"},
    ],
)
def test_one_hint_of_those_that_are_supported_is_needed(hints: dict[str, str]) -> None:
    with pytest.raises(OAuthError, match="invalid_request"):
        read_request(parameters(**hints), CLIENT)


def test_the_number_is_a_member_of_the_response_only_if_there_is_one() -> None:
    without = backchannel_response("a", expires_in_s=300, interval_s=5, match_number=None)
    with_number = backchannel_response("a", expires_in_s=300, interval_s=5, match_number=42)

    assert without == {"auth_req_id": "a", "expires_in": 300, "interval": 5}
    assert with_number == {**without, "match_number": 42}


async def test_a_request_for_nobody_stores_nothing(core: MemoryCore, records: Records) -> None:
    requests = BackchannelRequests(
        clock=core.clock,
        db=core.db,
        settings=core.settings(OidcSettings),
        references=records.references,
        people=HintedPeople(
            db=core.db,
            issuers=records.issuers,
            keys=records.keys,
            subscribers=core.subscribers,
            grants=records.grants,
        ),
        questions=BackchannelQuestions(
            texts=core.texts,
            issuers=records.issuers,
            projects=core.projects,
            consents=records.consents,
            sign_ins=core.peers.sign_ins,
        ),
    )
    with pytest.raises(OAuthError, match="unknown_user_id"):
        await requests.start(CLIENT, replace(REQUEST, hint="nobody"))

    async with core.db.read() as tx:
        assert await tx.fetch_all("SELECT * FROM oidc_ciba_requests") == []


async def test_an_auth_req_id_that_we_did_not_make_costs_no_query(
    without_database: MemoryCore,
) -> None:
    records = Records(without_database)
    grants = BackchannelGrants(
        db=without_database.db,
        references=records.references,
        sign_ins=without_database.peers.sign_ins,
        consents=records.consents,
        polls=polls_of(without_database, records),
    )

    with pytest.raises(OAuthError, match="invalid_grant"):
        await grants.take(CLIENT, Parameters([("auth_req_id", "cib_1")]))
