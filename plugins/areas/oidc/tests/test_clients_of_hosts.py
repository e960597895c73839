"""Which host people are told of, and which `sub` a host gets."""

import httpx2
import pytest

from plugins.areas.oidc.tests.conftest import CALLBACK, Registry, Visitor


async def test_the_consent_page_names_the_host_to_which_the_browser_returns(
    ann: Visitor, register: Registry
) -> None:
    client = await register(home_url="https://bank.example/")
    await ann.authorize(client)
    asked = await ann.press_yes()
    page = await ann.http.get(asked.headers["Location"])

    assert "You will return to app.example." in page.text
    assert "bank.example" not in page.text


class TestPairwiseSubjects:
    """OpenID Connect Core 1.0, section 8.1."""

    async def sub(self, ann: Visitor, client: dict[str, object], **changed: object) -> str:
        found: str = ann.claims(await ann.tokens(client, **changed))["sub"]
        return found

    async def test_clients_of_one_host_are_told_the_same_and_others_another(
        self, ann: Visitor, register: Registry
    ) -> None:
        kind = {"subject_type": "pairwise", "first_party": True}
        first, second = await register(**kind), await register(**kind)
        plain = await register(first_party=True)

        of_first = await self.sub(ann, first)

        assert of_first == await self.sub(ann, second)
        assert of_first != await self.sub(ann, plain)

    async def test_the_home_page_of_another_host_does_not_change_it(
        self, ann: Visitor, register: Registry, client: httpx2.AsyncClient
    ) -> None:
        one = await register(subject_type="pairwise", first_party=True)
        before = await self.sub(ann, one)
        changed = await client.patch(
            f"/v1/oidc/clients/{one['client_id']}", json={"home_url": "https://www.example/"}
        )

        assert changed.status_code == 200
        assert await self.sub(ann, one) == before

    async def test_the_host_can_not_be_changed(
        self, register: Registry, client: httpx2.AsyncClient
    ) -> None:
        """Every person would be another one to the client."""
        one = await register(subject_type="pairwise")
        path = f"/v1/oidc/clients/{one['client_id']}"
        moved = await client.patch(path, json={"redirect_uris": ["https://new.example/callback"]})
        within = await client.patch(path, json={"redirect_uris": ["https://app.example/new"]})

        assert moved.status_code == 400
        assert "must keep the host" in moved.text
        assert within.status_code == 200

    @pytest.mark.parametrize(("subject_type", "status"), [("pairwise", 400), ("public", 201)])
    async def test_it_has_one_host(
        self, client: httpx2.AsyncClient, subject_type: str, status: int
    ) -> None:
        body = {
            "name": "Grafana",
            "subject_type": subject_type,
            "redirect_uris": [CALLBACK, "https://other.example/"],
        }

        assert (await client.post("/v1/oidc/clients", json=body)).status_code == status
