"""The description says what the routes do: every path and method, and answers that fit their schemas."""

from __future__ import annotations

from http_rig import Server

from guardhook.views.http import openapi, schemas
from guardhook.views.http.routes import TABLE


def fits(value: object, schema: dict[str, object]) -> str | None:
    """Why a value does not fit a schema (the part of JSON schema that is used here)."""
    ref = schema.get("$ref")
    if isinstance(ref, str):
        return fits(value, schemas.SCHEMAS[ref.rpartition("/")[2]])
    one_of = schema.get("oneOf")
    if isinstance(one_of, list):
        said = [fits(value, option) for option in one_of]
        return None if said.count(None) == 1 else f"fits {said.count(None)} of {len(said)}: {said}"
    if "const" in schema:
        return None if value == schema["const"] else f"{value!r} is not {schema['const']!r}"
    enum = schema.get("enum")
    if isinstance(enum, list):
        return None if value in enum else f"{value!r} is none of {enum}"
    kinds = schema.get("type")
    if kinds is not None:
        names = kinds if isinstance(kinds, list) else [kinds]
        tests = {
            "string": isinstance(value, str), "null": value is None, "boolean": isinstance(value, bool), "object": isinstance(value, dict), "array": isinstance(value, list),
            "integer": isinstance(value, int) and not isinstance(value, bool), "number": isinstance(value, (int, float)) and not isinstance(value, bool),
        }  # fmt: skip
        if not any(tests[name] for name in names):
            return f"{value!r} is no {names}"
    if isinstance(value, dict):
        required, properties = schema.get("required", []), schema.get("properties", {})
        assert isinstance(required, list) and isinstance(properties, dict)
        for name in required:
            if name not in value:
                return f"{name} is missing"
        for name, item in value.items():
            if name in properties and (said_ := fits(item, properties[name])) is not None:
                return f"{name}: {said_}"
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        for item in value:
            if (said_ := fits(item, schema["items"])) is not None:  # type: ignore[arg-type]
                return said_
    return None


def test_every_route_is_described_and_nothing_else(shared: Server) -> None:
    document = shared.ask("/openapi.json").json
    assert document == openapi.document(TABLE)
    paths = document["paths"]
    assert isinstance(paths, dict)
    assert {(m.upper(), p) for p, methods in paths.items() for m in methods} == {(r.method, r.path) for r in TABLE}
    for path, methods in paths.items():
        allowed = shared.ask(path.replace("{id}", "x"), "DELETE")
        assert allowed.status == 405 and set(allowed.headers["allow"].split(", ")) == {m.upper() for m in methods}
        for operation in methods.values():
            named = {p["name"] for p in operation.get("parameters", []) if p["in"] == "path"}
            assert named == {part[1:-1] for part in path.split("/") if part.startswith("{")}
    names = [operation["operationId"] for methods in paths.values() for operation in methods.values()]
    assert len(names) == len(set(names))


def test_every_schema_that_is_named_exists() -> None:
    used: set[str] = set()

    def walk(value: object) -> None:
        if isinstance(value, dict):
            ref = value.get("$ref")
            if isinstance(ref, str):
                used.add(ref.rpartition("/")[2])
            for item in value.values():
                walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)

    walk(openapi.document(TABLE))
    assert used <= set(schemas.SCHEMAS)


def test_answers_fit_their_schemas(shared: Server) -> None:
    page = shared.ask("/v1/traces?sort=started_at").json
    items = page["items"]
    assert isinstance(items, list)
    run = shared.ask("/v1/runs").json["items"][0]["run_id"]  # type: ignore[index]
    values = {"/v1/traces/{id}": items[0]["id"], "/v1/runs/{id}": run}
    for route in TABLE:
        if route.method != "GET" or route.type != "application/json":
            continue
        path = route.path
        for start, value in values.items():
            if path.startswith(start):
                path = path.replace("{id}", value)
        if path.endswith("/why"):
            path += "?step=3"
        got = shared.ask(path)
        assert got.status == 200, (path, got)
        assert fits(got.json, schemas.SCHEMAS[route.answer]) is None, (
            path,
            fits(got.json, schemas.SCHEMAS[route.answer]),
        )
    for path in ("/v1/traces/none", "/v1/traces?limit=x", "/nothing"):
        assert fits(shared.ask(path).json, schemas.SCHEMAS["Error"]) is None


def test_parameters_that_are_described_are_taken(shared: Server) -> None:
    samples = {
        "limit": "1",
        "offset": "0",
        "status": "running",
        "since": "30d",
        "sort": "started_at",
        "project": "/",
        "step": "1",
        "from_step": "1",
        "to_step": "1",
        "turn": "last",
        "paths": "hidden",
    }
    for route in TABLE:
        if route.type == "text/event-stream" or route.body is not None:
            continue
        for parameter in route.query:
            value = samples.get(parameter.name, "true" if parameter.kind == "boolean" else "x")
            got = shared.ask(f"{route.path.replace('{id}', 'trc_none')}?{parameter.name}={value}", route.method)
            assert got.status in (200, 404), (route.path, parameter, got)
