"""The folder of a trained model: the trainer writes it, the registry keeps it."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from .base import Record

OutputRole = Literal["policy", "reward_model", "judge", "rubric_writer"]
FolderFormat = Literal["hf", "peft"]
Head = Literal["lm", "scalar"]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
_PART = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
FILE_NAME = rf"^{_PART}(/{_PART})*$"
MAX_NAME = 200
FileName = Annotated[str, StringConstraints(pattern=FILE_NAME, max_length=MAX_NAME)]
"""A path below the folder, with `/`: no part of it begins with a dot, so it cannot leave the folder."""


MAX_FILE_BYTES = 4 << 40
"""4 TiB: a file is listed in pieces, and nobody may ask for billions of them."""


class ModelFile(Record):
    path: FileName
    bytes: int = Field(ge=0, le=MAX_FILE_BYTES)
    digest: Digest


class ModelFacts(Record):
    """A folder that stock transformers (`hf`) or peft (`peft`) loads.

    `name` is the name of the output within its run. `head` is `scalar` if the model gives one number for a text instead of tokens.
    `base` is the model that the run began with, by its name in the run's config. `base_digest` is the digest of its weights, because
    an adapter fits no others; it is empty if it was not taken.
    """

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,59}$")
    role: OutputRole
    format: FolderFormat
    head: Head = "lm"
    base: str = Field(max_length=500)
    base_digest: Digest | Literal[""] = ""
    files: tuple[ModelFile, ...] = Field(min_length=1, max_length=2000)


class ModelSource(Record):
    """The folders from which a model is loaded: the directory or hub id of a whole model, then the folders of the adapters laid on it."""

    path: str = Field(min_length=1)
    adapters: tuple[str, ...] = ()
    head: Head = "lm"
