"""The OpenAPI 3.1 description, made of the table of routes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardhook import __version__
from guardhook.views.http.schemas import SCHEMAS

if TYPE_CHECKING:
    from guardhook.views.http.routes import Route

_WHAT = {
    400: "The request means nothing.", 401: "No token, or an unknown one.", 403: "Host or Origin is refused.", 404: "There is no such thing, or it is not the caller's.",
    408: "The body did not come in time.", 413: "The body is too large.", 415: "The body is not sent as JSON.", 422: "The rollout file breaks a rule of its format, or a fact of the run can't be told.", 500: "What was recorded can't be read.",
    501: "No rollout folder is configured.", 503: "Busy, or it took too long.",
}  # fmt: skip


def document(table: tuple[Route, ...]) -> dict[str, object]:
    """The whole document."""
    paths: dict[str, dict[str, object]] = {}
    for route in table:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "guardhook",
            "version": __version__,
            "description": "What coding agents did on this machine, read-only, and replaying of rollout files. For programs of this machine.",
        },
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _operation(route: Route) -> dict[str, object]:
    name = route.path.strip("/").replace("/", "_").replace("{", "").replace("}", "").replace(".", "_")
    out: dict[str, object] = {"operationId": f"{route.method.lower()}_{name}", "summary": route.help}
    parameters: list[dict[str, object]] = [
        {"name": part[1:-1], "in": "path", "required": True, "schema": {"type": "string"}}
        for part in route.path.split("/")
        if part.startswith("{")
    ]
    parameters += [
        {"name": p.name, "in": "query", "required": False, "description": p.help, "schema": {"type": p.kind}}
        for p in route.query
    ]
    if parameters:
        out["parameters"] = parameters
    errors = {400, 401, 403, 503, *route.errors}
    if route.body is not None:
        errors |= {408, 413, 415}
        out["requestBody"] = {"required": True, "content": {"application/json": {"schema": _ref(route.body)}}}
    answers = {str(route.status): _answer("As asked.", route.type, route.answer)}
    for status in route.more:
        answers[str(status)] = _answer("As asked.", route.type, route.answer)
    answers |= {str(status): _answer(_WHAT[status], "application/json", "Error") for status in sorted(errors)}
    out["responses"] = answers
    return out


def _answer(what: str, kind: str, schema: str) -> dict[str, object]:
    return {"description": what, "content": {kind: {"schema": _ref(schema)}}}


def _ref(name: str) -> dict[str, object]:
    return {"$ref": f"#/components/schemas/{name}"}
