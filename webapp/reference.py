"""The API's reference page, drawn from its own OpenAPI document: what is shown is what is served."""

from dataclasses import dataclass

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from webapp.api import api


@dataclass(frozen=True)
class Operation:
    method: str
    path: str
    summary: str
    parameters: list[dict[str, object]]
    body: str


def operations() -> dict[str, list[Operation]]:
    """Every operation, grouped by its tag, in the order of the document."""
    groups: dict[str, list[Operation]] = {}
    for path, methods in api.get_openapi_schema()["paths"].items():
        for method, spec in methods.items():
            content = spec.get("requestBody", {}).get("content", {}).get("application/json", {})
            operation = Operation(
                method=method.upper(),
                path=path,
                summary=spec.get("summary", ""),
                parameters=spec.get("parameters", []),
                body=content.get("schema", {}).get("$ref", "").rpartition("/")[2],
            )
            groups.setdefault((spec.get("tags") or ["other"])[0], []).append(operation)
    return groups


@login_not_required
def page(request: HttpRequest) -> HttpResponse:
    """Open to all, as the document itself is: it describes, it does not tell."""
    return render(request, "api_docs.html", {"groups": operations()})
