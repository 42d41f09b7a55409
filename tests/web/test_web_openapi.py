"""The OpenAPI document is valid, complete and correct."""

import gzip
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast
from urllib.parse import urlencode, urlsplit

import msgspec
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator
from twisted.internet.defer import Deferred

from mailcheck.api.openapi.document import load_examples
from mailcheck.api.requests.checks import WatchChoice
from mailcheck.api.requests.heartbeats import HeartbeatChoice
from mailcheck.api.requests.parsing import (
    NoParameters,
    Request,
    read_object,
    read_texts,
    request_fields,
)
from mailcheck.api.urls import PublicUrls
from mailcheck.assembly.doors.rest import build_routes
from mailcheck.config.options import WebOptions
from mailcheck.core.accounts import Caller
from mailcheck.core.domains.watches import WatchSettings
from mailcheck.web.api.calls import PATH_PARAMETERS, Route, make_route
from mailcheck.web.api.description import MAX_CACHED, ApiDescription
from mailcheck.web.dashboard.api_reference.view import write_command
from mailcheck.web.site.application import Call
from tests.house import Answer, House, config_in_memory, run
from tests.spec.description import (
    described_schema,
    description_problems,
    load_document,
)
from tests.spec.judge import BrokenPromise, judge_response
from tests.spec.routes import API, ROUTES
from tests.spec.shapes import Shape
from tests.table import rows
from tests.web.checking import checking_house, zone_with
from tests.web.raw_http import RawHttp

DOCUMENT = load_document()

OPERATIONS: dict[str, tuple[str, str, Any]] = {
    operation["operationId"]: (method.upper(), path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}

PROMISES = {
    (route.method, route.path.removeprefix(API)): route for route in ROUTES if route.is_metered
}

BY_ID = rows(*OPERATIONS)


def fetch(house: House, **headers: str) -> Answer:
    """Request the document without a key."""
    return house.ask("GET", "/openapi.json", key=None, headers=headers).answer()


def resolved(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """Resolve a reference."""
    while "$ref" in part:
        found: Any = DOCUMENT
        for step in part["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        part = found
    return part


def bodies(operation: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Return status and content of every JSON response."""
    for status, response in operation["responses"].items():
        content = resolved(response).get("content", {}).get("application/json")
        if content is not None:
            yield status, content


def test_the_document_is_valid() -> None:
    """The document is valid OpenAPI 3.1."""
    assert [str(error) for error in OpenAPIV31SpecValidator(DOCUMENT).iter_errors()] == []


def test_exactly_the_routes_are_described() -> None:
    """The document describes exactly the routes in the tables of the contract."""
    assert {(method, path) for method, path, _ in OPERATIONS.values()} == set(PROMISES)


def test_a_route_requires_an_operation() -> None:
    """A route cannot be created without an operation."""

    async def handle(_: Call[NoParameters]) -> Any:
        raise NotImplementedError

    with pytest.raises(TypeError, match="operation"):
        make_route("GET", "/novelty", handle)  # type: ignore[call-arg]


@BY_ID
def test_the_statuses_are_those_promised(name: str) -> None:
    """The document contains exactly the statuses in the tables."""
    method, path, operation = OPERATIONS[name]
    promised = {str(status) for status in PROMISES[method, path].bodies}
    described = set(operation["responses"])
    if name == "getDescription":
        assert described == {"200", "304"}
    else:
        assert described == promised


@BY_ID
def test_the_fields_are_those_promised(name: str) -> None:
    """Required fields agree with the tables, and no other field is described."""
    method, path, operation = OPERATIONS[name]
    for status, content in bodies(operation):
        found = PROMISES[method, path].bodies[int(status)]
        alternatives = found if isinstance(found, tuple) else (found,)
        shapes = [one for one in alternatives if isinstance(one, Shape)]
        if len(shapes) == 1 and name != "getDescription":
            assert list(differences(shapes[0].schema, content["schema"], status)) == []


def differences(promised: Any, described: Any, where: str) -> Iterator[str]:
    """Compare a table with a schema as deeply as both go."""
    promised, described = _object(promised), _object(resolved(described))
    if "items" in promised and "items" in described:
        yield from differences(promised["items"], described["items"], f"{where}[]")
    if "properties" not in promised:
        return
    fields, others = promised["properties"], described.get("properties", {})
    if promised.get("additionalProperties") is False and not set(others) <= set(fields):
        yield f"{where}: {set(others) - set(fields)} stand in no table"
    if not set(promised["required"]) <= set(described.get("required", ())):
        yield f"{where}: {set(promised['required']) - set(described['required'])} not required"
    for field in set(fields) & set(others):
        yield from differences(fields[field], others[field], f"{where}.{field}")


def _object(schema: Any) -> Any:
    """Return the object or list in a schema that also allows null."""
    for one in schema.get("anyOf", ()):
        one = resolved(one)
        if one.get("type") in ("object", "array"):
            return one
    return schema


@BY_ID
def test_examples_are_real(name: str) -> None:
    """Each body has an example that matches its schema and the table of the route."""
    method, path, operation = OPERATIONS[name]
    if name == "getDescription":
        return
    asked = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if asked is not None:
        assert not described_schema(asked["schema"]).problems(asked["example"])
    for status, content in bodies(operation):
        assert not described_schema(content["schema"]).problems(content["example"]), status
        found = PROMISES[method, path].bodies[int(status)]
        alternatives = found if isinstance(found, tuple) else (found,)
        shapes = [one for one in alternatives if isinstance(one, Shape)]
        assert any(not one.problems(content["example"]) for one in shapes), status


def test_every_example_is_used() -> None:
    """The file contains no unused examples."""
    written = [
        content["example"]
        for responses in (
            *(operation["responses"] for _, _, operation in OPERATIONS.values()),
            DOCUMENT["components"]["responses"],
        )
        for response in responses.values()
        for content in response.get("content", {}).values()
        if "example" in content
    ]
    requests = [operation.get("requestBody") for _, _, operation in OPERATIONS.values()]
    contents = [one["content"].get("application/json", {}) for one in requests if one]
    written += [content["example"] for content in contents if content]
    assert [name for name, example in load_examples().items() if example not in written] == []


def test_every_named_schema_is_used() -> None:
    """The document contains no unused schemas."""
    text = str(DOCUMENT)
    assert [
        name
        for name in DOCUMENT["components"]["schemas"]
        if f"'#/components/schemas/{name}'" not in text
    ] == []


def test_names_of_schemas_are_short() -> None:
    """No two shapes share a name, which would add their modules to the names of the schemas."""
    assert [name for name in DOCUMENT["components"]["schemas"] if "." in name] == []


def test_links_lead_to_operations() -> None:
    """A link names an existing operation and existing parameters."""
    for _, _, operation in OPERATIONS.values():
        for response in operation["responses"].values():
            for link in resolved(response).get("links", {}).values():
                _, _, target = OPERATIONS[link["operationId"]]
                assert set(link["parameters"]) <= {one["name"] for one in target["parameters"]}


def noting(request: type[Request], read: set[str]) -> type[Request]:
    """Create a subclass of a request that records which of its fields are read."""

    def note(self: Request, name: str) -> Any:
        read.add(name)
        return object.__getattribute__(self, name)

    namespace = {"__getattribute__": note}
    made = msgspec.defstruct("Noting", [], bases=(request,), namespace=namespace, frozen=True)
    return cast(type[Request], made)


@pytest.fixture
def checking() -> House:
    """A house with scripted DNS."""
    house = checking_house(zone_with({}))
    house.use_every_scope()
    return house


def routes_of(house: House) -> Sequence[Route[Any]]:
    """Return the routes of a house."""
    return build_routes(house.assembly)


def parameters(operation: Any, place: str) -> dict[str, Any]:
    """Return the parameters of an operation by name."""
    return {one["name"]: one for one in operation.get("parameters", ()) if one["in"] == place}


def test_every_parameter_that_is_described_is_read(checking: House) -> None:
    """Every handler uses all its parameters, and all path variables are described."""
    caller: Caller = run(checking.assembly.accounts.authenticator.identify(checking.key))
    for route in routes_of(checking):
        described = route.described
        _, _, operation = OPERATIONS[described.operation.id]
        query = parameters(operation, "query")
        required = {name: ["example.com"] for name, one in query.items() if one["required"]}
        read: set[str] = set()
        request: type[Request] = route.operation.request
        if route.operation.reads_body:
            example = operation["requestBody"]["content"]["application/json"]["example"]
            asked = read_object(noting(request, read), example)
        else:
            asked = read_texts(noting(request, read), required)
        path = dict.fromkeys(PATH_PARAMETERS, "none")
        runtime = checking.assembly.runtime
        call = Call(caller, runtime.now(), asked, path, urls=runtime.urls)
        under_way: Deferred[Any] = Deferred.fromCoroutine(route.handle(call))  # type: ignore[arg-type]
        under_way.addErrback(lambda _: None)
        under_way.cancel()
        if isinstance(asked, WatchChoice | HeartbeatChoice):
            asked.changed(WatchSettings())  # the watch, of which there is none, calls it
        fields = request_fields(request)
        assert {name for name, one in fields.items() if one.attribute not in read} == set()
        assert set(query) == (set() if route.operation.reads_body else set(fields)), described
        variables = {part[1:-1] for part in described.path.split("/") if part.startswith("{")}
        assert variables == set(parameters(operation, "path")), described


def bad_values(schema: Any) -> Iterator[str]:
    """Return values that the schema of a parameter rejects."""
    if "minimum" in schema:
        yield str(schema["minimum"] - 1)
    if "maximum" in schema:
        yield str(schema["maximum"] + 1)
    if "maxLength" in schema:
        yield "a" * (schema["maxLength"] + 1)
    if schema.get("type") in ("integer", "number", "boolean"):
        yield "many"
    if schema.get("format") == "date-time":
        yield "yesterday"
    if schema.get("pattern"):
        yield "no\0text"


@BY_ID
def test_values_outside_the_schema_are_rejected(checking: House, name: str) -> None:
    """A value that violates the schema is 400, and the error names the parameter."""
    method, path, operation = OPERATIONS[name]
    query = parameters(operation, "query")
    needed = {one["name"]: one["example"] for one in query.values() if one["required"]}
    target = path.replace("{id}", "none").replace("{testId}", "none")
    for parameter in query.values():
        schema = parameter["schema"]
        values: list[Any] = list(bad_values(schema))
        if schema.get("type") == "array":
            values = [["8.8.4.1"] * (schema["maxItems"] + 1), *bad_values(schema["items"])]
        elif parameter["required"]:
            values.append("")
        for value in [*values, *([] if schema.get("type") == "array" else [["1", "2"]])]:
            asked = urlencode({**needed, parameter["name"]: value}, doseq=True)
            answer = checking.ask(method, f"{target}?{asked}").answer()
            assert answer.status == 400, (parameter["name"], value)
            assert parameter["name"] in answer.json["error"]


@BY_ID
def test_values_in_the_schema_are_accepted(checking: House, name: str) -> None:
    """Examples and the bounds of ranges are accepted, and the sample command works."""
    method, path, operation = OPERATIONS[name]
    command = write_command(method, "http://127.0.0.1:8080/api/v1" + path, operation)
    words = shlex.split(command)
    assert words[0] == "curl"
    data = words[words.index("-d") + 1].encode() if "-d" in words else None
    target = urlsplit(words[-1])
    asked = [target.query]
    for parameter in parameters(operation, "query").values():
        schema = parameter["schema"]
        edges = [schema[edge] for edge in ("minimum", "maximum", "default") if edge in schema]
        without = [one for one in target.query.split("&") if not one.startswith(parameter["name"])]
        asked += [
            "&".join([*without, f"{parameter['name']}={str(edge).lower()}"]) for edge in edges
        ]
    for query in asked:
        pending = checking.open(f"{target.path}?{query}", method, key="", data=data)
        if not pending.is_answered:
            checking.pass_time(60)
        if pending.media_type.startswith("text/event-stream"):  # without an end
            pending.hang_up()
            continue
        assert pending.answer().status in (200, 404, 408), query


def test_it_needs_no_key_and_costs_nothing(house: House) -> None:
    """The document needs no key and is not counted. The headers show the limits of the address."""
    for _ in range(3):
        answer = fetch(house)
        assert answer.status == 200
        assert answer.headers["x-ratelimit-remaining"] == "60"
    assert answer.json == DOCUMENT
    wrong = house.ask("GET", "/openapi.json", key="wrong").answer()
    assert (wrong.status, wrong.headers["x-ratelimit-remaining"]) == (200, "60")
    assert house.get("/inbox", key=None).headers["x-ratelimit-remaining"] == "59"
    assert fetch(house).headers["x-ratelimit-remaining"] == "59"


def test_it_is_sent_once(house: House) -> None:
    """A client with the current document gets 304. The tag changes with the document."""
    answer = fetch(house)
    tag = answer.headers["etag"]
    assert answer.headers["cache-control"] == "no-cache"
    for known in (tag, f'"another", {tag}', "*"):
        again = fetch(house, **{"If-None-Match": known})
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
    assert fetch(house, **{"If-None-Match": '"another"'}).status == 200
    other = House(config_in_memory(web=WebOptions(public_url="https://mail.example.org")))
    assert fetch(other).headers["etag"] != tag


def test_a_304_ends_where_it_ends(house: House) -> None:
    """A 304 has no body, so the next response on the connection is parsed correctly."""
    tag = fetch(house).headers["etag"]
    raw = RawHttp(house)
    path = "/api/v1/openapi.json"
    for _ in range(2):
        raw.send(f"GET {path} HTTP/1.1\r\nHost: a\r\nIf-None-Match: {tag}\r\n\r\n".encode())
    sent = raw.received()
    assert sent.count(b"HTTP/1.1 304 ") == 2
    assert sent.endswith(b"\r\n\r\n")


def test_it_is_compressed(house: House) -> None:
    """The compressed document has a tenth of the size."""
    raw = RawHttp(house)
    raw.send(b"GET /api/v1/openapi.json HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n")
    head, _, body = raw.received().partition(b"\r\n\r\n")
    assert b"content-encoding: gzip" in head.lower()
    assert b"vary: accept-encoding" in head.lower()
    plain = fetch(house).body
    assert gzip.decompress(body) == plain
    assert len(body) < 100_000


def test_a_head_and_a_wrong_method(house: House) -> None:
    """HEAD is answered like GET, and other methods are rejected."""
    assert house.ask("HEAD", "/openapi.json", key=None).answer().status == 200
    assert house.ask("POST", "/openapi.json").answer().headers["allow"] == "GET, HEAD"
    assert house.ask("POST", "/openapi.json", key=None).answer().status == 401


@rows(
    ("", {}, "http://127.0.0.1:8080/api/v1"),
    ("https://mail.example.org/mc", {}, "https://mail.example.org/mc/api/v1"),
    ("", {"X-Forwarded-Proto": "https", "Host": "mc.example"}, "https://mc.example/api/v1"),
)
def test_the_server_is_where_the_client_asked(
    public_url: str, headers: dict[str, str], server: str
) -> None:
    """The server URL in the document is the one that the client used."""
    web = WebOptions(public_url=public_url, trusted_proxies=("127.0.0.1/32",))
    house = House(config_in_memory(web=web))
    fields = [f"{name}: {value}" for name, value in headers.items() if name != "Host"]
    raw = RawHttp(house)
    host = headers.get("Host", "127.0.0.1:8080")
    lines = ["GET /api/v1/openapi.json HTTP/1.1", f"Host: {host}", *fields, "", ""]
    raw.send("\r\n".join(lines).encode())
    answer = raw.answers(("GET", "/api/v1/openapi.json"))[0]
    assert answer.json["servers"] == [{"url": server}]
    assert answer.json["externalDocs"]["url"] == server.replace("/api/v1", "/api")


def test_the_cache_is_bounded() -> None:
    """The number of cached documents is bounded, no matter how many names a proxy passes on."""
    description = ApiDescription(())
    names = [f"https://name{number}.example" for number in range(MAX_CACHED + 1)]
    documents = [description.document(PublicUrls(name)) for name in names]
    assert [one["servers"] for one in documents] == [[{"url": f"{name}/api/v1"}] for name in names]
    assert description.document(PublicUrls(names[-1])) is documents[-1]
    assert description.document(PublicUrls(names[0])) is not documents[0]


def test_answers_are_held_to_it(house: House) -> None:
    """A response with an undocumented field, header or status fails its test."""
    answer = house.get("/inbox")
    for broken in (
        replace(answer, headers={**answer.headers, "x-ratelimit-remaining": ""}),
        replace(answer, body=answer.body.replace(b'"tagTotal"', b'"tagsInAll"')),
        replace(answer, status=418),
    ):
        with pytest.raises(BrokenPromise):
            judge_response("GET", f"{API}/inbox", broken)
    undescribed = {**answer.json, "novelty": 1}
    found = description_problems("GET", "/inbox", answer, undescribed)
    assert any("novelty" in problem for problem in found)
    headers = {**answer.headers, "x-ratelimit-remaining": "-1"}
    assert list(
        description_problems("GET", "/inbox", replace(answer, headers=headers), answer.json)
    )
    del headers["x-ratelimit-remaining"]
    assert list(
        description_problems("GET", "/inbox", replace(answer, headers=headers), answer.json)
    )
    assert list(description_problems("GET", "/inbox", replace(answer, status=404), answer.json))


def test_an_operation_is_described_in_words() -> None:
    """Each operation has a group, a summary of one line, and a description."""
    groups = [tag["name"] for tag in DOCUMENT["tags"]]
    for _, _, operation in OPERATIONS.values():
        assert operation["tags"][0] in groups
        assert 0 < len(operation["summary"]) <= 60
        assert operation["description"].endswith(".")
