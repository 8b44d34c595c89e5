"""References to a dataset in requests: by id, by name, or to one of its versions."""

from typing import Annotated

from pydantic import Field

from webapp.core.problems import Invalid
from webapp.core.requests.openapi import StrictIn

from .. import queries
from ..models import DatasetVersion

Id = Annotated[int, Field(ge=1, lt=2**63)]
Number = Annotated[int, Field(ge=1, lt=2**31)]


class DatasetIn(StrictIn):
    """A dataset by id or by name; without `version` its newest one."""

    id: Id | None = None
    name: str | None = Field(None, max_length=120)
    version: Number | None = None


DatasetRef = Annotated[
    Id | str | DatasetIn, Field(description="A dataset by id or name, or one of its versions", examples=["demo"])
]


def named(ref: int | str | DatasetIn) -> DatasetIn:
    """The reference as a `DatasetIn`."""
    if isinstance(ref, DatasetIn):
        return ref
    return DatasetIn(id=ref, name=None) if isinstance(ref, int) else DatasetIn(name=ref)


def find(workspace_id: int, ref: int | str | DatasetIn) -> DatasetVersion:
    """The version that the reference names. Raises Invalid at `dataset` if there is none."""
    choice = named(ref)
    if choice.id is None and not choice.name:
        raise Invalid("A dataset is missing.", {"dataset": "name one by its id or its name"})
    version = queries.version_of(workspace_id, choice.id, choice.name, choice.version)
    if version is None:
        raise Invalid("There is no such dataset.", {"dataset": "this workspace has no such dataset or version"})
    return version
