"""The OpenAPI document, arranged for reading."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Operation:
    method: str
    path: str
    summary: str
    parameters: list[dict[str, object]]
    body: str


def operations() -> dict[str, list[Operation]]:
    """Every operation, grouped by its tag, in the order of the document."""
    from webapp.api import api  # the API is built from the apps; importing it here earlier would be a circle

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
