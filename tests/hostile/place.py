"""A service with all areas, whose project has one resource of every kind, and the addresses of its pages."""

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from msgsvc_core.service import Service
from msgsvc_dashboard.accounts import Accounts
from msgsvc_dashboard.accounts.links import AccountLinks
from msgsvc_devkit.dashboard import Visitor, stranger, visitor
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.resources import MINI_APP, MiniAppPlugin, resources_of
from tests.api.subscribing import subscribing
from tests.dashboard.walking import SETTINGS
from tests.paths import by_kind

MANY = 10_000_000

_PARAMETER = re.compile(r"{(\w+)(?::\w+)?}")


@dataclass(frozen=True, slots=True)
class Place:
    """`ids` are resources by the parameters that name them; `tokens` those of public pages by path."""

    service: Service
    tenant: Tenant
    owner: Visitor
    operator: Visitor
    ids: dict[str, str]
    tokens: dict[str, dict[str, str]]

    def path(self, template: str, /, **changed: str) -> str:
        """The path with what there is in place of its parameters; what names nothing here is `nothing`."""
        known = {**self.ids, **self.tokens.get(template, {}), **changed}
        return _PARAMETER.sub(lambda match: known.get(match[1], "nothing"), by_kind(template))


def parameters(template: str) -> list[str]:
    return _PARAMETER.findall(template)


async def furnish(make_service: ServiceFactory, make_tenant: Any, **settings: Any) -> Place:
    """Made once for a test; limits of how often something is asked are out of its way. `settings` are further
    sections."""
    service = await make_service(
        extra_plugins=[("mini_app", MiniAppPlugin())],
        **{
            **SETTINGS,
            "plugins": (*SETTINGS["plugins"], "sandbox"),
            "channels": {**SETTINGS["channels"], "sandbox_a": {"plugin": "sandbox"}},
            "limits": {"requests_per_minute": MANY},
            "log": {"level": "error"},
            **settings,
        },
    )
    tenant: Tenant = await make_tenant(service)
    project_id = tenant.project.project_id
    owner = await visitor(service, project_id)
    operator = await stranger(service, project_id, is_operator=True)
    ids = await resources_of(service, tenant, subscribing(service, tenant), "Ann")
    ids |= {
        "project_id": project_id,
        "account_id": owner.account_id,
        "number": "1",
        "channel": MINI_APP,
    }
    return Place(service, tenant, owner, operator, ids, await _tokens(service, tenant, owner, ids))


async def _tokens(
    service: Service, tenant: Tenant, owner: Visitor, ids: dict[str, str]
) -> dict[str, dict[str, str]]:
    project_id = tenant.project.project_id
    own = service.subscribers.preferences.url(project_id, ids["subscriber_id"])
    hosted = {
        "subscriber_id": ids["subscriber_id"],
        "return_url": "https://shop.example/",
        "purpose": "page",
    }
    code = await _made(tenant, "/v1/otp/send", hosted)
    gateway = {"name": "Novu", "sender": "novu", "channels": ["messenger_a"]}
    compat = urlsplit((await _made(tenant, "/v1/gateways", gateway))["url"]).path.split("/")
    token = await _made(tenant, "/v1/oidc/registration-tokens", {"name": "App"})
    async with service.db.transaction() as tx:
        invited = await service.get(Accounts).create(tx, email="new@example.com", name="New")
        link = await service.get(AccountLinks).for_account(tx, invited.account_id, "password")
    page = urlsplit(code["url"]).path.rpartition("/")[2]
    return {
        "/preferences/{token}": {"token": urlsplit(own).path.rpartition("/")[2]},
        "/code/{token}": {"token": page},
        "/code/{token}/again": {"token": page},
        "/compat/{sender}/{secret}": {"sender": compat[-2], "secret": compat[-1]},
        "/dashboard/link/{token}": {"token": link},
        "/oidc/{project_id}/register": {"bearer": token["token"]},
        "/brand/preview/{colour}.css": {"colour": "aabbcc"},
        "/brand/{colour}.css": {"colour": "aabbcc"},
    }


async def _made(tenant: Tenant, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = await tenant.client.post(path, json=body)
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()
    return found
