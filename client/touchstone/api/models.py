"""The group `models` of the API. Made by `python -m scripts.client` from the OpenAPI document of the server: do not edit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

from ..calling import Group, quote_part


class AliasIn(TypedDict):
    model: int
    reason: NotRequired[str]
    expected: NotRequired[str | None]


class AliasOut(TypedDict):
    name: str
    model: ModelName
    moved_at: str


class GenerateIn(TypedDict):
    """Either `prompt`, which is one message of a user, or `messages`."""

    prompt: NotRequired[str | None]
    messages: NotRequired[list[GenerateMessage] | None]
    max_new_tokens: NotRequired[int]
    temperature: NotRequired[float]
    top_p: NotRequired[float]
    seed: NotRequired[int]
    stop: NotRequired[list[str]]


class GenerateMessage(TypedDict):
    role: Literal["system", "user", "assistant"]
    content: str


class ModelChange(TypedDict):
    name: NotRequired[str | None]
    description: NotRequired[str | None]


class ModelFileOut(TypedDict):
    path: str
    bytes: int
    digest: str


class ModelFiles(TypedDict):
    items: list[ModelFileOut]
    next: None


class ModelIn(TypedDict):
    name: str
    source: NotRequired[Literal["local", "hub"]]
    path: str
    description: NotRequired[str]
    base: NotRequired[int | None]
    head: NotRequired[Literal["", "lm", "scalar"]]


class ModelName(TypedDict):
    id: int
    name: str


class ModelOut(TypedDict):
    id: int
    name: str
    source: str
    path: str
    description: str
    facts: dict[str, Any]
    role: str
    format: str
    head: str
    base: ModelName | None
    digest: str
    run: ModelRun | None
    present: bool | None
    stage: str
    aliases: list[str]
    created_at: str
    archived_at: str | None


class ModelRun(TypedDict):
    id: int
    name: str
    experiment: str
    step: int


class PromotionOut(TypedDict):
    kind: str
    alias: str
    stage: str
    model: int | None
    model_name: str
    before: str
    reason: str
    by: str | None
    at: str


class StageIn(TypedDict):
    stage: Literal["", "candidate", "production", "retired"]
    reason: NotRequired[str]


class StageOut(TypedDict):
    stage: str


class Models(Group):
    def list_aliases(self, *, page_size: int | None = None) -> Iterator[AliasOut]:
        """Every alias with the model that it points at. Aliases are sorted by name."""
        return self._pages(AliasOut, "/models/aliases", query={"limit": page_size})

    def get_alias(self, name: str) -> AliasOut:
        """The model that an alias points at."""
        return self._json(AliasOut, "GET", f"/models/aliases/{quote_part(name)}")

    def move_alias(self, name: str, body: AliasIn) -> AliasOut:
        """Let an alias point at a model. Creates the alias if there is none. 409 if `expected` is given and it
        points elsewhere by now.
        """
        return self._json(AliasOut, "PUT", f"/models/aliases/{quote_part(name)}", body=body)

    def remove_alias(self, name: str) -> None:
        """Remove an alias; the model stays."""
        self._nothing("DELETE", f"/models/aliases/{quote_part(name)}")

    def set_stage(self, model_id: int, body: StageIn) -> StageOut:
        """Set the stage of a model."""
        return self._json(StageOut, "PUT", f"/models/{model_id}/stage", body=body)

    def promotions(
        self, *, alias: str | None = None, model: int | None = None, page_size: int | None = None
    ) -> Iterator[PromotionOut]:
        """Moves of aliases and changes of stages, newest first. `alias` and `model` (an id) narrow it down."""
        return self._pages(
            PromotionOut, "/models/promotions", query={"alias": alias, "model": model, "limit": page_size}
        )

    def all(self, *, page_size: int | None = None, archived: bool | None = None) -> Iterator[ModelOut]:
        """Models that are not archived, newest first."""
        return self._pages(ModelOut, "/models", query={"limit": page_size, "archived": archived})

    def register(self, body: ModelIn) -> ModelOut:
        """Register a local directory or a hub id."""
        return self._json(ModelOut, "POST", "/models", body=body)

    def get(self, model_id: int) -> ModelOut:
        """One model."""
        return self._json(ModelOut, "GET", f"/models/{model_id}")

    def change(self, model_id: int, body: ModelChange) -> ModelOut:
        """Rename a model, or describe it."""
        return self._json(ModelOut, "PATCH", f"/models/{model_id}", body=body)

    def delete(self, model_id: int) -> None:
        """Remove an unused model from the list."""
        self._nothing("DELETE", f"/models/{model_id}")

    def archive(self, model_id: int) -> ModelOut:
        """Archive a model; its files stay."""
        return self._json(ModelOut, "POST", f"/models/{model_id}/archive", again=True)

    def restore(self, model_id: int) -> ModelOut:
        """Restore an archived model."""
        return self._json(ModelOut, "POST", f"/models/{model_id}/restore")

    def try_model(self, model_id: int) -> ModelOut:
        """Try again whether a model can be trained. If `facts.trial.state` is refused or not_tried, the trial is
        removed until a worker has tried the model again.
        """
        return self._json(ModelOut, "POST", f"/models/{model_id}/trial")

    def files(self, model_id: int) -> ModelFiles:
        """The files of a model that a run has trained."""
        return self._json(ModelFiles, "GET", f"/models/{model_id}/files")

    def download(self, model_id: int, to: Path) -> Path:
        """The folder of a model that a run has trained. An uncompressed tar. A download that broke off continues
        with `Range` (`curl -C -`).
        """
        return self._file(to, f"/models/{model_id}/download")

    def generate(self, model_id: int, body: GenerateIn) -> Iterator[tuple[str, dict[str, Any]]]:
        """Let a model answer, token by token. Server-sent events: `loading` or `waiting` while nothing can be
        said yet, `start`, a `token` for each token with the `text` it adds, and `done` with the whole text,
        or `error` with a code (memory, busy, too_long, ended, failed).
        """
        return self._events("POST", f"/models/{model_id}/generate", body=body)
