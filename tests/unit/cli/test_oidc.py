"""`msgsvc oidc`: clients of the OpenID provider, and its keys."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from msgsvc_core.cli.configuration import opened
from msgsvc_oidc.keys.service import SigningKeys

CALLBACK = "https://grafana.example/login/generic_oauth"


@pytest.fixture
def with_oidc(with_accounts: Path) -> Path:
    """The same configuration with the OpenID provider."""
    text = with_accounts.read_text("utf-8").replace('["dashboard"]', '["dashboard", "oidc"]')
    with_accounts.write_text(text + '[oidc]\nsigning_alg = "ES256"\n', encoding="utf-8")
    return with_accounts


@pytest.fixture
def project_id(run: Any, with_oidc: Path) -> str:
    made: str = json.loads(run("project", "create", "Shop", "--json").stdout)["project_id"]
    return made


def create(run: Any, project_id: str, *options: str) -> dict[str, Any]:
    made = run(
        *("oidc", "client", "create", project_id, "Grafana", "--redirect-uri", CALLBACK),
        *("--json", *options),
    )
    assert made.exit_code == 0, made.stderr
    found: dict[str, Any] = json.loads(made.stdout)
    return found


def test_a_new_client_is_printed_with_what_to_paste(run: Any, project_id: str) -> None:
    made = run("oidc", "client", "create", project_id, "Grafana", "--redirect-uri", CALLBACK)
    issuer = f"http://127.0.0.1:8000/oidc/{project_id}"
    [client] = json.loads(run("oidc", "client", "list", project_id, "--json").stdout)["data"]

    assert f"issuer:        {issuer}\n" in made.stdout
    assert f"client id:     {client['client_id']}\n" in made.stdout
    assert "client secret: mos_" in made.stdout
    assert made.stdout.endswith(f"{issuer}/.well-known/openid-configuration\n")


def test_the_secret_is_shown_once(run: Any, project_id: str) -> None:
    made = create(run, project_id)
    shown = run("oidc", "client", "show", project_id, made["client_id"])
    plain = run("oidc", "client", "show", project_id, made["client_id"], "--json")

    assert made["client_secret"].startswith("mos_")
    assert "mos_" not in shown.stdout + plain.stdout
    assert f"redirect_uris: {CALLBACK}" in shown.stdout
    assert len(json.loads(plain.stdout)["secrets"]) == 1


def test_options_say_what_a_client_may(run: Any, project_id: str) -> None:
    made = create(
        run,
        project_id,
        *("--scope", "openid", "--scope", "notify", "--auth-method", "none", "--first-party"),
        *("--pairwise", "--grant-type", "authorization_code"),
        *("--post-logout-redirect-uri", "https://grafana.example/"),
        *("--backchannel-logout-uri", "https://grafana.example/logout"),
    )

    assert "client_secret" not in made
    assert made["scopes"] == ["openid", "notify"]
    assert made["grant_types"] == ["authorization_code"]
    assert (made["first_party"], made["subject_type"]) == (True, "pairwise")
    assert made["post_logout_redirect_uris"] == ["https://grafana.example/"]
    assert made["backchannel_logout_uri"] == "https://grafana.example/logout"


def test_what_can_not_be_registered_is_refused(run: Any, project_id: str) -> None:
    plain_http = run(
        *("oidc", "client", "create", project_id, "Wiki"),
        *("--redirect-uri", "http://wiki.example/callback"),
    )
    scope = run("oidc", "client", "create", project_id, "Wiki", "--scope", "openid,email")
    nobody = run(
        *("oidc", "client", "create", "prj_0", "Wiki", "--redirect-uri", CALLBACK),
    )

    assert (plain_http.exit_code, "https" in plain_http.stderr) == (1, True)
    assert (scope.exit_code, "scopes" in scope.stderr) == (1, True)
    assert (nobody.exit_code, "prj_0" in nobody.stderr) == (1, True)


def test_a_new_secret_leaves_the_previous_one_valid_for_a_time(run: Any, project_id: str) -> None:
    made = create(run, project_id)
    rotated = run("oidc", "client", "rotate-secret", project_id, made["client_id"])
    again = run("oidc", "client", "rotate-secret", project_id, made["client_id"], "--json")
    shown = run("oidc", "client", "show", project_id, made["client_id"])

    assert "client secret: mos_" in rotated.stdout
    assert "the previous one is valid until " in rotated.stdout
    assert json.loads(again.stdout)["previous_valid_until"] is not None
    assert shown.stdout.count("secret sec_") == 2
    assert shown.stdout.count(", valid until ") == 1


def test_an_app_without_a_secret_has_none_to_rotate(run: Any, project_id: str) -> None:
    made = create(run, project_id, "--auth-method", "none")
    refused = run("oidc", "client", "rotate-secret", project_id, made["client_id"])

    assert (refused.exit_code, "without a secret" in refused.stderr) == (1, True)


def test_a_deleted_client_is_gone(run: Any, project_id: str) -> None:
    made = create(run, project_id)
    deleted = run("oidc", "client", "delete", project_id, made["client_id"])
    again = run("oidc", "client", "delete", project_id, made["client_id"])
    listed = run("oidc", "client", "list", project_id)

    assert deleted.stdout == f"{made['client_id']} is deleted\n"
    assert (again.exit_code, made["client_id"] in again.stderr) == (1, True)
    assert "there are no clients" in listed.stdout


def test_clients_of_a_project_are_listed(run: Any, project_id: str) -> None:
    made = create(run, project_id)
    listed = run("oidc", "client", "list", project_id).stdout
    nobody = run("oidc", "client", "list", "prj_0")

    assert made["client_id"] in listed
    assert "openid profile" in listed
    assert nobody.exit_code == 1


def test_there_are_no_keys_before_a_client_needs_one(run: Any, project_id: str) -> None:
    listed = run("oidc", "keys", "list")
    rotated = run("oidc", "keys", "rotate")

    assert "there are no keys" in listed.stdout
    assert (rotated.exit_code, "no key was rotated" in rotated.stderr) == (1, True)
    assert json.loads(run("oidc", "keys", "list", "--json").stdout) == {"data": []}


async def make_old_keys(config: Path) -> None:
    """Keys that every client has had the time to fetch."""
    async with opened(config) as service:
        await service.get(SigningKeys).public_set()
        async with service.db.transaction() as tx:
            await tx.execute("UPDATE oidc_keys SET changed_at_ms = 0")


def test_the_next_key_signs_after_a_rotation(run: Any, project_id: str, with_oidc: Path) -> None:
    asyncio.run(make_old_keys(with_oidc))
    before = json.loads(run("oidc", "keys", "list", "--json").stdout)["data"]
    [rotated] = json.loads(run("oidc", "keys", "rotate", "--json").stdout)["data"]
    again = run("oidc", "keys", "rotate")
    listed = run("oidc", "keys", "list")

    assert {key["status"]: key["key_id"] for key in before}["next"] == rotated["key_id"]
    assert rotated["status"] == "current"
    assert (again.exit_code, "no key was rotated" in again.stderr) == (1, True)
    assert [word in listed.stdout for word in ("current", "next", "retired")] == [True] * 3


async def public_ids(config: Path) -> set[str]:
    async with opened(config) as service:
        found = await service.get(SigningKeys).public_set()
        return {key["kid"] for key in found["keys"]}


def test_keys_that_nothing_decrypts_are_replaced(
    run: Any, project_id: str, with_oidc: Path
) -> None:
    asyncio.run(make_old_keys(with_oidc))
    before = asyncio.run(public_ids(with_oidc))
    text = with_oidc.read_text("utf-8").replace("kF3vQ9xLw2ZrT8nYp5HsB7mJd4GcA6eU", "x" * 32)
    with_oidc.write_text(text, encoding="utf-8")
    [signing] = json.loads(run("oidc", "keys", "replace", "--json").stdout)["data"]
    told = run("oidc", "keys", "replace")

    assert signing["status"] == "current"
    assert signing["key_id"] not in before
    assert "signs from now on (ES256)" in told.stdout
    assert not before & asyncio.run(public_ids(with_oidc))


def test_without_the_plugin_the_command_says_so(run: Any, with_accounts: Path) -> None:
    refused = run("oidc", "keys", "list")

    assert refused.exit_code == 2
    assert "oidc" in refused.stderr


def test_an_api_is_created_that_introspects_tokens_of_a_client(run: Any, project_id: str) -> None:
    page = create(run, project_id, "--auth-method", "none", "--claims-in-userinfo-only")
    made = run(
        *("oidc", "client", "create", project_id, "API", "--introspects", page["client_id"]),
        "--json",
    )
    api = json.loads(made.stdout)

    assert page["claims_in_id_token"] is False
    assert api["claims_in_id_token"] is True
    assert api["client_secret"].startswith("mos_")
    assert (api["grant_types"], api["introspects"]) == ([], [page["client_id"]])
