"""What the API says about itself: an OpenAPI document complete enough to generate a client from."""

from typing import Any

from ninja import NinjaAPI, Schema
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation

REF = "#/components/schemas/{model}"
STATUSES = (
    "400 broken JSON or form, 401 no valid token, 403 a role or token that may not, 404 not there or not yours, "
    "405 not with this method, 409 not in this state, 410 its files are gone, 413 too large, 416 a range behind the end, 422 wrong input, 429 too many requests, "
    "500 a fault of ours, 503 the database is away. 429 and 503 come with `Retry-After`."
)


class ErrorField(Schema):
    path: str
    message: str


class ErrorDetail(Schema):
    """`code` is for programs, `message` for people, `fields` name what is wrong where; `id` is also in `X-Request-Id`."""

    code: str
    message: str
    fields: list[ErrorField]
    id: str


class ErrorOut(Schema):
    """What helps out of the situation may stand beside `error`, such as the draft that is stored now."""

    error: ErrorDetail


class Document(OpenAPISchema):
    """Ninja's own, with the errors that every operation may answer with."""

    def responses(self, operation: Operation) -> dict[Any, dict[str, Any]]:
        return {**super().responses(operation), "default": {"$ref": "#/components/responses/Error"}}

    def get_components(self) -> dict[str, Any]:
        schema = ErrorOut.model_json_schema(ref_template=REF)
        self.add_schema_definitions({**schema.pop("$defs"), "ErrorOut": schema})
        content = {"application/json": {"schema": {"$ref": REF.format(model="ErrorOut")}}}
        return {**super().get_components(), "responses": {"Error": {"description": STATUSES, "content": content}}}

    def add_schema_definitions(self, definitions: dict[str, Any]) -> None:
        """Raises ValueError where two schemas have one name: the later one would be shown as the other, too."""
        for name, definition in definitions.items():
            if self.schemas.get(name, definition) != definition:
                raise ValueError(f"two schemas of the API are called {name}; one of them needs another name")
        super().add_schema_definitions(definitions)


class DescribedAPI(NinjaAPI):
    def get_openapi_schema(
        self, *, path_prefix: str | None = None, path_params: dict[str, Any] | None = None
    ) -> OpenAPISchema:
        return Document(self, self.get_root_path(path_params or {}) if path_prefix is None else path_prefix)


def sends(*types: str, ranges: bool = False) -> dict[str, Any]:
    """`openapi_extra` of an operation whose answer is made by its own code, in one of these content types.

    `ranges`: a request with the header `Range` gets a part.
    """
    binary = {"type": "string", "format": "binary"}
    content = {each: {"schema": {"type": "object"} if each == "application/json" else binary} for each in types}
    answers: dict[int, Any] = {200: {"content": content}}
    if ranges:
        answers[206] = {"description": "The part that the header `Range` asks for", "content": content}
    return {"responses": answers}
