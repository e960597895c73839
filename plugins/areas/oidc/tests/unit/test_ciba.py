"""Backchannel requests without a database: what a request asks for, and the parts from fakes."""

from dataclasses import replace

import pytest

from msgsvc_core.plugins.sign_ins import DirectSignIn
from msgsvc_core.subscribers.models import Recipient
from msgsvc_devkit import plugin_context
from msgsvc_devkit.fakes import FakeSignIns, FakeTx
from msgsvc_oidc import plugin
from msgsvc_oidc.ciba.endpoint import BackchannelEndpoint
from msgsvc_oidc.ciba.people import HintedPeople
from msgsvc_oidc.ciba.polling import BackchannelGrants
from msgsvc_oidc.ciba.questions import BackchannelQuestions
from msgsvc_oidc.ciba.service import BackchannelRequests
from msgsvc_oidc.endpoints.client_access import ClientLimit
from msgsvc_oidc.protocol.ciba import BackchannelRequest, backchannel_response, read_request
from msgsvc_oidc.protocol.errors import OAuthError
from msgsvc_oidc.protocol.parameters import Parameters
from msgsvc_oidc.settings import OidcSettings
from plugins.areas.oidc.tests.unit.test_parts import CLIENT, Parts

REQUEST = BackchannelRequest(
    scopes=("openid",),
    hint_kind="login_hint",
    hint="sub_1",
    binding_message="Pay 20 EUR",
    requested_expiry_s=None,
    number_matching=False,
)


@pytest.fixture
def parts() -> Parts:
    return Parts(plugin_context(plugin=plugin, settings=[OidcSettings()]))


def people_of(parts: Parts) -> HintedPeople:
    return HintedPeople(
        db=parts.core.db,
        issuers=parts.issuers,
        keys=parts.keys,
        subscribers=parts.core.subscribers,
        grants=parts.grants,
    )


def questions_of(parts: Parts) -> BackchannelQuestions:
    return BackchannelQuestions(
        texts=parts.core.texts,
        issuers=parts.issuers,
        projects=parts.core.projects,
        consents=parts.consents,
        sign_ins=parts.core.peers.sign_ins,
    )


def requests_of(parts: Parts) -> BackchannelRequests:
    return BackchannelRequests(
        clock=parts.core.clock,
        db=parts.core.db,
        settings=parts.core.settings(OidcSettings),
        references=parts.references,
        people=people_of(parts),
        questions=questions_of(parts),
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


async def test_a_hint_that_names_nobody_is_an_unknown_user(parts: Parts) -> None:
    with pytest.raises(OAuthError, match="unknown_user_id"):
        await people_of(parts).find(CLIENT, replace(REQUEST, hint="nobody"))


async def test_the_question_is_of_the_request_alone(parts: Parts) -> None:
    project = await parts.core.projects.add(FakeTx(), "Shop")
    client = replace(CLIENT, project_id=project.project_id)
    person = Recipient("sub_1", "messenger_a", "messenger_a", "active", 0, "en")
    await questions_of(parts).ask(
        FakeTx(answers=[[]]), client, REQUEST, person, request_id="cib_1", lifetime_s=60
    )

    sign_ins = parts.core.peers.sign_ins
    assert isinstance(sign_ins, FakeSignIns)
    asked = sign_ins.latest.request
    assert isinstance(asked, DirectSignIn)
    assert (asked.source, asked.source_id, asked.lifetime_s) == ("oidc", "cib_1", 60)
    assert asked.details == ["Grafana may then:", "• Recognise you when you sign in again"]


async def test_a_request_for_nobody_stores_nothing(parts: Parts) -> None:
    with pytest.raises(OAuthError, match="unknown_user_id"):
        await requests_of(parts).start(CLIENT, replace(REQUEST, hint="nobody"))

    assert "oidc_ciba_requests" not in parts.core.db.rows


async def test_an_auth_req_id_that_we_did_not_make_costs_no_query(parts: Parts) -> None:
    grants = BackchannelGrants(
        db=parts.core.db,
        references=parts.references,
        sign_ins=parts.core.peers.sign_ins,
        consents=parts.consents,
        polls=parts.polls,
    )

    with pytest.raises(OAuthError, match="invalid_grant"):
        await grants.take(CLIENT, Parameters([("auth_req_id", "cib_1")]))
    assert parts.core.db.statements == []


def test_the_endpoint_takes_posts(parts: Parts) -> None:
    endpoint = BackchannelEndpoint(
        db=parts.core.db,
        access=parts.access,
        limit=ClientLimit(limiter=parts.core.limiter, per_minute=1, name="ciba"),
        requests=requests_of(parts),
        journal=parts.journal,
    )

    [route] = endpoint.routes()
    assert getattr(route, "path", "") == "/oidc/{project_id}/bc-authorize"
