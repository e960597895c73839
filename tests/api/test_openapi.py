"""The description: generated from the types that validate, complete, and without a foreign host."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from typer.testing import CliRunner

from msgsvc_core.api.endpoint import Endpoint, RequestModel, ResponseModel, Router
from msgsvc_core.cli.main import app
from msgsvc_core.cli.openapi import document_text
from msgsvc_core.cli.reference import of_everything
from msgsvc_core.config.settings import Settings
from msgsvc_core.http.openapi import errors_of, openapi
from msgsvc_core.http.openapi.webhooks import SubscriberEventFields
from msgsvc_core.kernel.json import to_json
from msgsvc_core.service import Service
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_devkit.fixtures import ServiceFactory
from msgsvc_devkit.services import SECRET_KEY
from tests.api.test_described_bodies import models_in

PLUGINS = ("sandbox", "auth", "otp", "webhooks")

#: Every plugin of ours that has endpoints.
ALL_PLUGINS = (
    *PLUGINS,
    "broadcasts",
    "scheduling",
    "drip",
    "forms",
    "helpdesk",
    "billing",
    "oidc",
    "telegram",
    "max",
    "whatsapp",
    "sms",
)


@cache
def endpoints_with(*plugins: str) -> list[Endpoint]:
    settings = {"secret_keys": (SECRET_KEY,), "plugins": plugins, "channels": {}}
    return list(Service(Settings.model_validate(settings)).endpoints)


def models_of(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    found: dict[str, Any] = openapi(endpoints, "http://msgsvc.test")["components"]["schemas"]
    return found


@cache
def all_models() -> dict[str, Any]:
    return models_of(endpoints_with(*ALL_PLUGINS))


def test_no_two_models_have_one_title() -> None:
    titles = Counter(model.get("title") for model in all_models().values())

    assert [title for title, times in titles.items() if times > 1] == []


@pytest.mark.parametrize("plugin", ALL_PLUGINS)
def test_models_are_called_and_are_the_same_whatever_else_is_loaded(plugin: str) -> None:
    endpoints = endpoints_with(plugin)
    of_core = {(each.method, each.path) for each in endpoints_with()}
    own = [each for each in endpoints if (each.method, each.path) not in of_core]

    # A channel has no endpoints: what it might change are models of the core's.
    models = models_of(own or endpoints)

    assert {name: all_models().get(name) for name in models} == models


@pytest.fixture(scope="module")
def described() -> Service:
    """A service with every plugin, which need not be started to describe itself."""
    return Service(Settings.model_validate({"secret_keys": (SECRET_KEY,), "plugins": PLUGINS}))


@pytest.fixture(scope="module")
async def reader(described: Service) -> Any:
    transport = httpx2.ASGITransport(app=described.app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://msgsvc.test") as client:
        yield client


@pytest.fixture(scope="module")
async def document(reader: httpx2.AsyncClient) -> dict[str, Any]:
    return dict((await reader.get("/openapi.json")).json())


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Method, path and operation, with parameters and responses in place of references to them."""

    def resolved(part: dict[str, Any]) -> dict[str, Any]:
        if "$ref" not in part:
            return part
        _, _, kind, name = part["$ref"].split("/")
        return dict(document["components"][kind][name])

    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield (
                method,
                path,
                {
                    **operation,
                    "parameters": [resolved(each) for each in operation["parameters"]],
                    "responses": {
                        status: resolved(response)
                        for status, response in operation["responses"].items()
                    },
                },
            )


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == "$ref":
                yield inner
            yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


#: What integrators look for first.
BASICS = (
    "Authorization: Bearer",
    "X-API-Key",
    "next_cursor",
    "X-RateLimit-Remaining",
    "Retry-After",
    "Idempotency-Key",
    "Idempotent-Replayed",
)


async def test_what_all_endpoints_have_in_common_is_explained(
    reader: httpx2.AsyncClient, document: dict[str, Any]
) -> None:
    page = unescape((await reader.get("/docs")).text)
    guide = (Path(__file__).parents[2] / "docs/guides/api-basics.md").read_text("utf-8")

    for name in BASICS:
        assert name in document["info"]["description"]
        assert name in page
        assert name in guide or name.lower() in guide


async def test_it_is_openapi_3_1_with_what_that_demands(document: dict[str, Any]) -> None:
    assert re.fullmatch(r"3\.1\.\d+", document["openapi"])
    assert set(document["info"]) >= {"title", "version"}
    assert document["servers"][0]["url"] == "http://127.0.0.1:8000"
    for _, _, operation in operations(document):
        assert operation["responses"]
        assert all(response["description"] for response in operation["responses"].values())


async def test_every_endpoint_is_described(described: Service, document: dict[str, Any]) -> None:
    found = {(method.upper(), path) for method, path, _ in operations(document)}

    assert found == {(endpoint.method, endpoint.path) for endpoint in described.endpoints}


async def test_every_endpoint_has_a_summary_of_its_own(document: dict[str, Any]) -> None:
    summaries = [operation["summary"] for _, _, operation in operations(document)]

    assert all(summary.endswith(".") and " " in summary for summary in summaries)
    assert len(set(summaries)) == len(summaries)


async def test_every_operation_has_an_id_of_its_own(document: dict[str, Any]) -> None:
    ids = [operation["operationId"] for _, _, operation in operations(document)]

    assert len(set(ids)) == len(ids)


async def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    known = {
        f"#/components/{kind}/{name}"
        for kind, parts in document["components"].items()
        for name in parts
    }

    assert set(references(document)) <= known


async def test_every_path_parameter_is_declared(document: dict[str, Any]) -> None:
    for _, path, operation in operations(document):
        declared = {p["name"] for p in operation["parameters"] if p["in"] == "path"}
        assert declared == set(re.findall(r"{(\w+)}", path))


async def test_parameters_are_unique_and_typed(document: dict[str, Any]) -> None:
    for _, _, operation in operations(document):
        keys = [(parameter["in"], parameter["name"]) for parameter in operation["parameters"]]
        assert len(set(keys)) == len(keys)
        assert all(parameter["schema"] for parameter in operation["parameters"])


async def test_every_schema_and_field_of_a_body_says_what_it_is(document: dict[str, Any]) -> None:
    for name, schema in document["components"]["schemas"].items():
        assert schema.get("description"), name
        for field in schema.get("properties", {}).values():
            assert {"type", "anyOf", "$ref", "const", "enum", "title"} & set(field), name


async def test_bodies_refuse_unknown_fields_in_the_description_too(
    document: dict[str, Any],
) -> None:
    schemas = document["components"]["schemas"]
    for _, _, operation in operations(document):
        for content in operation.get("requestBody", {}).get("content", {}).values():
            reference = content["schema"].get("$ref", "").rpartition("/")[2]
            schema = schemas[reference] if reference else content["schema"]
            assert schema["additionalProperties"] is False


async def test_the_key_is_demanded_where_it_is_needed(
    described: Service, document: dict[str, Any]
) -> None:
    public = {
        (endpoint.method, endpoint.path) for endpoint in described.endpoints if endpoint.public
    }
    open_operations = {
        (method.upper(), path)
        for method, path, operation in operations(document)
        if operation.get("security") == []
    }

    assert open_operations == public
    assert document["security"] == [{"bearer": []}, {"header": []}]


async def test_posts_with_a_key_take_an_idempotency_key(document: dict[str, Any]) -> None:
    for method, path, operation in operations(document):
        names = {parameter["name"] for parameter in operation["parameters"]}
        needs = method == "post" and operation.get("security") != []
        assert ("Idempotency-Key" in names) is needs, path


async def test_whatever_writes_says_that_it_may_refuse_what_it_is_sent(
    document: dict[str, Any],
) -> None:
    for method, path, operation in operations(document):
        if method != "get":
            codes = operation["responses"]["400"]["description"].split()
            assert {"`bad_request`", "`validation_failed`"} <= set(codes), path
            assert "413" in operation["responses"], path


async def test_sending_says_that_a_template_may_be_missing(document: dict[str, Any]) -> None:
    (send,) = (operation for _, path, operation in operations(document) if path == "/v1/send")
    missing = send["responses"]["404"]["description"]

    assert "`not_found`" in missing.split()


async def test_every_error_of_an_endpoint_is_in_the_catalogue(described: Service) -> None:
    catalogue = {error.code for error in described.errors}

    for endpoint in described.endpoints:
        assert {error.code for error in endpoint.errors} <= catalogue, endpoint.path


class Links(HTMLParser):
    """Collects what a page loads or leads to."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.ids.add(values.get("id") or "")
        loading = "href" if tag == "link" else "src"
        if values.get(loading):
            self.loaded.append(str(values[loading]))


@pytest.mark.parametrize("path", ["/docs", "/docs/types", "/docs/errors"])
async def test_a_page_loads_nothing_from_another_host(
    reader: httpx2.AsyncClient, path: str
) -> None:
    answer = await reader.get(path)
    links = Links()
    links.feed(answer.text)

    assert links.loaded
    for address in links.loaded:
        assert not re.match(r"(\w+:)?//", address)
        loaded = await reader.get(str(answer.url.join(address)))
        assert loaded.status_code == 200, address
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


async def test_the_api_page_says_what_each_operation_answers(
    described: Service, reader: httpx2.AsyncClient
) -> None:
    page = unescape((await reader.get("/docs")).text)
    shown = re.findall(r'<article class="operation" id="(\w+)".*?Response: (.*?)\.</p>', page, re.S)
    answers = {name: re.sub("<.*?>", "", answer) for name, answer in shown}

    assert answers["delete_template"] == "204"
    assert answers["export_subscribers"] == "200, text/csv"
    for endpoint in described.endpoints:
        status, _, rest = answers[endpoint.name].partition(", ")
        has_body = bool(endpoint.answer or endpoint.media_type)
        assert status == str(endpoint.status if has_body else 204), endpoint.name
        assert bool(rest) is has_body, endpoint.name


async def test_the_api_page_begins_with_a_call_of_the_api(reader: httpx2.AsyncClient) -> None:
    page = (await reader.get("/docs")).text
    first = re.search(r'<article class="operation" [^>]*data-path="([^"]*)"', page)

    assert first
    assert first[1].startswith("/v1/")


async def test_the_errors_page_has_every_code_under_its_anchor(
    described: Service, reader: httpx2.AsyncClient
) -> None:
    links = Links()
    page = (await reader.get("/docs/errors")).text
    links.feed(page)

    assert {error.code for error in described.errors} <= links.ids
    meanings = re.sub(r"</?code>", "`", unescape(page))
    assert all(str(error.__doc__).strip() in meanings for error in described.errors)


@pytest.mark.parametrize("path", ["/docs", "/docs/types"])
async def test_the_api_page_is_compressed_for_those_who_read_that(
    reader: httpx2.AsyncClient, path: str
) -> None:
    whole = await reader.get(path, headers={"Accept-Encoding": "identity"})
    small = await reader.get(path, headers={"Accept-Encoding": "gzip"})

    assert small.text == whole.text
    assert (small.headers["content-encoding"], whole.headers.get("content-encoding")) == (
        "gzip",
        None,
    )
    assert int(small.headers["content-length"]) < 120_000


async def test_the_reference_can_be_closed_and_error_codes_stay(
    make_service: ServiceFactory,
) -> None:
    service = await make_service(api_docs=False)
    transport = httpx2.ASGITransport(app=service.app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://msgsvc.test") as client:
        described = ("/docs", "/docs/types", "/openapi.json")
        closed = [(await client.get(path)).status_code for path in described]
        errors = await client.get("/docs/errors")
        front = await client.get("/")

    assert closed == [404, 404, 404]
    assert errors.status_code == 200
    assert "openapi.json" not in errors.text
    assert front.headers["Location"] == "/docs/errors"


async def test_the_api_page_names_every_endpoint(
    described: Service, reader: httpx2.AsyncClient
) -> None:
    page = (await reader.get("/docs")).text

    for endpoint in described.endpoints:
        assert endpoint.path in page
        assert f'id="{endpoint.name}"' in page


async def test_the_api_page_says_what_fields_and_parameters_mean(
    reader: httpx2.AsyncClient, document: dict[str, Any]
) -> None:
    pages = [(await reader.get(path)).text for path in ("/docs", "/docs/types")]
    page = unescape(re.sub("<[^>]+>", "", "".join(pages)))

    told = {
        part.get("description") or part["schema"].get("description")
        for _, _, operation in operations(document)
        for part in operation["parameters"]
        if part["in"] == "query"
    }
    for schema in document["components"]["schemas"].values():
        told |= {field.get("description") for field in schema.get("properties", {}).values()}
    assert len(told) > 100
    assert [each for each in told if each and each.replace("`", "") not in page] == []


async def test_every_type_that_an_operation_names_is_on_the_page_of_types(
    reader: httpx2.AsyncClient,
) -> None:
    links, page = Links(), (await reader.get("/docs")).text
    links.feed((await reader.get("/docs/types")).text)
    named = set(re.findall(r'href="docs/types#(\w+)"', page))

    assert len(named) > 50
    assert named <= links.ids


async def test_the_docs_address_of_an_error_leads_to_its_anchor(reader: httpx2.AsyncClient) -> None:
    error = (await reader.get("/v1/nothing")).json()
    address, _, anchor = error["docs_url"].partition("#")
    page = await reader.get(address.removeprefix("http://127.0.0.1:8000"))

    assert f'id="{anchor}"' in page.text


async def test_the_docs_address_can_be_another(reader: httpx2.AsyncClient) -> None:
    settings = {"secret_keys": (SECRET_KEY,), "plugins": (), "channels": {}}
    service = Service(Settings.model_validate({**settings, "docs_url": "https://docs.example/api"}))
    transport = httpx2.ASGITransport(app=service.app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://msgsvc.test") as client:
        answer = await client.get("/v1/nothing")

    assert answer.json()["docs_url"] == "https://docs.example/api/errors#not_found"


@pytest.fixture(scope="module")
def everything() -> Service:
    return Service(of_everything())


@pytest.fixture(scope="module")
def whole(everything: Service) -> dict[str, Any]:
    """The document of everything that is installed."""
    return everything.openapi(everything.endpoints)


@pytest.fixture(scope="module")
def published(everything: Service) -> dict[str, Any]:
    """The document for clients: without what pages ask for."""
    found: dict[str, Any] = json.loads(document_text(everything))
    return found


def test_every_area_is_described(whole: dict[str, Any]) -> None:
    used = {tag for _, _, operation in operations(whole) for tag in operation["tags"]}

    assert {tag["name"] for tag in whole["tags"]} == used
    assert [tag["name"] for tag in whole["tags"] if not tag.get("description")] == []


def test_every_error_response_lists_its_codes_with_an_example_of_each(
    whole: dict[str, Any],
) -> None:
    for _, path, operation in operations(whole):
        for status, response in operation["responses"].items():
            if status < "400":
                continue
            codes = response["x-error-codes"]
            content = response["content"]["application/json"]
            assert content["schema"] == {"$ref": "#/components/schemas/ErrorEnvelope"}
            assert list(content["examples"]) == codes, path
            assert {whole["components"]["x-errors"][code]["status"] for code in codes} == {
                int(status)
            }


def test_examples_of_errors_have_their_code_and_where_it_is_documented(
    everything: Service, whole: dict[str, Any]
) -> None:
    examples = whole["components"]["examples"]

    used = {error.code for endpoint in everything.endpoints for error in errors_of(endpoint)}
    assert examples.keys() == used
    assert whole["components"]["x-errors"].keys() == {error.code for error in everything.errors}
    for code, example in examples.items():
        assert example["value"]["code"] == code
        assert example["value"]["docs_url"] == f"{everything.settings.errors_url}#{code}"


def test_what_asks_to_wait_says_for_how_long(whole: dict[str, Any]) -> None:
    for _, path, operation in operations(whole):
        for status, response in operation["responses"].items():
            waits = status in {"425", "429", "503"}
            assert ("Retry-After" in response["headers"]) is waits, path


async def test_only_what_is_stored_with_a_key_can_be_a_replay(document: dict[str, Any]) -> None:
    replayed = {
        status
        for _, _, operation in operations(document)
        for status, response in operation["responses"].items()
        if status >= "4" and "Idempotent-Replayed" in response.get("headers", {})
    }

    # A 402 and a 404 leave the key free.
    assert replayed == {"409"}


def test_lists_say_how_they_are_paged(whole: dict[str, Any]) -> None:
    paged = {
        operation["operationId"]: operation["x-pagination"]
        for _, _, operation in operations(whole)
        if "x-pagination" in operation
    }
    with_cursor = {
        operation["operationId"]
        for _, _, operation in operations(whole)
        if "cursor" in {parameter["name"] for parameter in operation["parameters"]}
    }

    assert paged.keys() == with_cursor
    assert paged["list_messages"]["data"] == "data"
    assert paged["list_ticket_messages"]["next_cursor"] == "next_cursor"


def test_times_have_their_format(published: dict[str, Any]) -> None:
    times = [
        (f"{model}.{name}", field)
        for model, schema in published["components"]["schemas"].items()
        for name, field in schema.get("properties", {}).items()
        if name.endswith(("_at", "_until"))
    ]

    assert times
    for name, field in times:
        kinds = [each for each in field.get("anyOf", [field]) if each.get("type") != "null"]
        # `send_at` of a schedule may also be a local time.
        assert [each.get("format") for each in kinds] == ["date-time"] or (
            "local" in field["description"]
        ), name


def test_examples_of_answers_are_what_the_service_would_answer(
    everything: Service, published: dict[str, Any]
) -> None:
    shown = [
        (endpoint.answer, example)
        for endpoint in everything.endpoints
        if endpoint.answer and endpoint.path in published["paths"]
        for example in examples_of(published["paths"][endpoint.path][endpoint.method.lower()])
    ]

    assert shown
    for model, example in shown:
        answer = model.model_validate_json(json.dumps(example))
        assert isinstance(answer, ResponseModel)
        assert json.loads(answer.to_json()) == example


def examples_of(operation: dict[str, Any]) -> Iterator[Any]:
    """The examples of an operation's response."""
    for status, response in operation["responses"].items():
        if status.startswith("2"):
            content = response.get("content", {}).get("application/json", {})
            yield from [content["example"]] if "example" in content else []
            yield from (each["value"] for each in content.get("examples", {}).values())


def test_files_are_described_as_files(whole: dict[str, Any]) -> None:
    def body_of(path: str) -> dict[str, Any]:
        response = whole["paths"][path]["get"]["responses"]["200"]
        assert "Content-Disposition" in response["headers"]
        content: dict[str, Any] = response["content"]
        return content

    file = body_of("/v1/files/{file_id}/content")["application/octet-stream"]["schema"]
    table = body_of("/v1/subscribers/export")["text/csv"]["schema"]

    assert file["contentMediaType"] == "application/octet-stream"
    assert table == {"type": "string", "contentMediaType": "text/csv"}


def test_every_event_is_a_webhook_with_a_schema(everything: Service, whole: dict[str, Any]) -> None:
    assert whole["webhooks"].keys() == everything.events.catalogue.keys()
    for name, methods in whole["webhooks"].items():
        content = methods["post"]["requestBody"]["content"]["application/json"]
        model = content["schema"]["$ref"].rpartition("/")[2]
        schema = whole["components"]["schemas"][model]
        data = whole["components"]["schemas"][f"{model}Data"]
        assert schema["properties"]["event"]["const"] == name
        assert {"event_id", "occurred_at"} <= set(data["required"])
        assert ("subscriber_id" in data["properties"]) or not (
            everything.events.catalogue[name].of_subscriber
        )


def test_events_of_subscribers_have_the_fields_that_are_described() -> None:
    person = Subscriber(**dict.fromkeys(Subscriber.__dataclass_fields__, ""))

    assert list(SubscriberEventFields.model_fields) == list(person.event_fields())


def test_responses_have_all_their_fields_or_say_that_one_may_be_missing(
    whole: dict[str, Any],
) -> None:
    verify = whole["components"]["schemas"]["SessionStatus"]
    sent = whole["components"]["schemas"]["QueuedMessage"]

    assert "code" not in verify["required"]
    assert verify["properties"]["code"]["type"] == "string"
    assert set(sent["required"]) == {"message_id", "status"}


def test_what_may_be_missing_is_in_no_other_response(everything: Service) -> None:
    """A response itself leaves out what is None; those inside it need `exclude_if` at the field."""
    answers = [endpoint.answer for endpoint in everything.endpoints if endpoint.answer]
    inner = [
        model
        for answer in answers
        for field in answer.model_fields.values()
        for model in models_in(field.annotation)
    ]

    assert [model for model in inner if getattr(model, "leave_out_none", None)] == []


class SendBody(RequestModel):
    """A plugin's, which is called as one of the core."""

    parcel: str


async def send_parcel(ctx: Any, body: SendBody) -> None:
    """Sends a parcel."""


def test_a_plugin_changes_no_name_of_the_core(everything: Service, whole: dict[str, Any]) -> None:
    router = Router(area="parcels")
    router.post("/v1/parcels")(send_parcel)

    both = everything.openapi([*everything.endpoints, *router.endpoints])

    assert both["paths"]["/v1/send"] == whole["paths"]["/v1/send"]
    assert both["components"]["schemas"]["SendBody"] == whole["components"]["schemas"]["SendBody"]
    body = both["paths"]["/v1/parcels"]["post"]["requestBody"]["content"]["application/json"]
    name = body["schema"]["$ref"].rpartition("/")[2]
    assert list(both["components"]["schemas"][name]["properties"]) == ["parcel"]


@pytest.mark.parametrize("path", ["/openapi.json", "/docs", "/llms.txt", "/docs/messages.md"])
async def test_a_client_that_has_the_text_gets_no_second_copy(
    reader: httpx2.AsyncClient, path: str
) -> None:
    first = await reader.get(path)
    etag = first.headers["ETag"]
    again = await reader.get(path, headers={"If-None-Match": f'"another", {etag}'})
    other = await reader.get(path, headers={"If-None-Match": '"another"'})

    anything = await reader.get(path, headers={"If-None-Match": "*"})
    plain = await reader.get(path, headers={"Accept-Encoding": "gzip;q=0"})

    assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", etag)
    assert anything.status_code == 304
    assert "Content-Encoding" not in plain.headers
    assert (other.status_code, other.text) == (200, first.text)


async def test_the_published_document_is_short(
    reader: httpx2.AsyncClient, published: dict[str, Any]
) -> None:
    answer = await reader.get("/openapi.json", headers={"Accept-Encoding": "gzip"})

    assert len(to_json(published).encode()) <= 800_000
    assert answer.headers["Content-Encoding"] == "gzip"
    assert int(answer.headers["Content-Length"]) < 120_000


async def test_the_reference_as_text_has_every_operation_event_and_error(
    described: Service, reader: httpx2.AsyncClient, document: dict[str, Any]
) -> None:
    index = (await reader.get("/llms.txt")).text
    linked = re.findall(r"\((http://127\.0\.0\.1:8000/\S+)\)", index)
    pages = {link: await reader.get(urlsplit(link).path) for link in linked}
    whole = "".join(page.text for link, page in pages.items() if link.endswith(".md"))

    assert {page.status_code for page in pages.values()} == {200}
    for method, path, _ in operations(document):
        assert f"## `{method.upper()} {path}`" in whole
    assert all(f"## `{event}`" in whole for event in document["webhooks"])
    assert all(f"| `{error.code}` |" in whole for error in described.errors)
    assert not re.search(r"\]\((?!https?:)(?!\w[\w-]*\.md)", whole)


def test_one_area_is_described_alone(everything: Service, published: dict[str, Any]) -> None:
    part = json.loads(document_text(everything, ["webhooks"]))

    assert part["paths"].keys() == {path for path in published["paths"] if "/webhooks" in path}
    assert part["webhooks"] == {}
    assert set(references(part)) <= {
        f"#/components/{kind}/{name}"
        for kind, components in part["components"].items()
        for name in components
    }


def test_an_unknown_area_is_refused_with_those_that_exist() -> None:
    result = CliRunner().invoke(app, ["openapi", "--area", "webhook"])

    assert result.exit_code == 2
    assert "webhook is not one of" in " ".join(result.output.split())
