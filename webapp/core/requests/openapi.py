"""The API's description of itself: an OpenAPI document complete enough to generate a client from."""

from typing import Any

from ninja import NinjaAPI, Schema
from ninja.errors import ValidationError, ValidationErrorContext
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation
from pydantic import BaseModel, ConfigDict

REF = "#/components/schemas/{model}"
STATUSES = (
    "400 broken JSON or form, 401 no valid token, 403 a role or token that may not, 404 not there or not yours, "
    "405 not with this method, 409 not in this state, 410 its files are gone, 413 too large, 416 a range behind the end, 422 wrong input, 429 too many requests, "
    "500 a fault of ours, 503 the database is away. 429 and 503 come with `Retry-After`."
)


class StrictIn(Schema):
    """The body of a request. A key that it does not have is refused at its name: a misspelt key would otherwise be lost in silence."""

    model_config = ConfigDict(extra="forbid")


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
    """A remedy may stand beside `error`, such as the draft that is stored now."""

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
        """Raises ValueError if two schemas have one name: the later one would be shown as the other, too."""
        for name, definition in definitions.items():
            if self.schemas.get(name, definition) != definition:
                raise ValueError(f"two schemas of the API are called {name}; one of them needs another name")
        super().add_schema_definitions(definitions)


class DescribedAPI(NinjaAPI):
    def __init__(self, **told: Any) -> None:
        super().__init__(**told)
        self._documents: dict[str, OpenAPISchema] = {}

    def get_openapi_schema(
        self, *, path_prefix: str | None = None, path_params: dict[str, Any] | None = None
    ) -> OpenAPISchema:
        """Made once for each prefix, because it takes two seconds of a processor. All who ask share it, so read it only."""
        prefix = self.get_root_path(path_params or {}) if path_prefix is None else path_prefix
        if prefix not in self._documents:
            self._documents[prefix] = self.document(prefix)
        return self._documents[prefix]

    def document(self, prefix: str) -> OpenAPISchema:
        return Document(self, prefix)

    def validation_error_from_error_contexts(
        self, error_contexts: list[ValidationErrorContext[Any]]
    ) -> ValidationError:
        """Ninja's own, but what is wrong within a parameter (an item of a list, a choice of a union) is told at its name."""
        error = super().validation_error_from_error_contexts(error_contexts)
        places = [(each.model, found["loc"]) for each in error_contexts for found in _found(each)]
        for told, (model, loc) in zip(error.errors, places, strict=True):
            if model.__ninja_param_source__ == "query":
                names = model.__ninja_flatten_map_reverse__
                told["loc"] = (
                    "query",
                    *next((names[loc[:n]] for n in range(len(loc), 0, -1) if loc[:n] in names), loc),
                )
        return error


def _found(context: ValidationErrorContext[Any]) -> list[Any]:
    return context.pydantic_validation_error.errors(include_url=False)


def takes(record: type[BaseModel]) -> dict[str, Any]:
    """`openapi_extra` of an operation that reads a record out of its body by itself."""
    schema = record.model_json_schema(ref_template="#/$defs/{model}")
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


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
