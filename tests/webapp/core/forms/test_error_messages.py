"""Errors of pydantic in words."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, ValidationError, field_validator

from webapp.core.forms.error_messages import error_text


class Form(BaseModel):
    share: Annotated[float, Field(ge=0, lt=1)] = 0
    name: Annotated[str, Field(min_length=1, max_length=2000)] = "x"
    turns: Annotated[tuple[int, ...], Field(min_length=1, max_length=3)] = (1,)
    pair: Annotated[list[int], Field(min_length=2)] = [1, 2]
    bytes_: Annotated[int, Field(lt=2**31)] = 1
    most: Annotated[float, Field(le=1_500_000.5)] = 1
    side: Literal["train", "heldout"] = "train"

    @field_validator("side")
    @classmethod
    def _open(cls, side: str) -> str:
        if side == "heldout":
            raise ValueError("is closed")
        return side


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"share": -1}, "must be at least 0"),
        ({"share": 1}, "must be less than 1"),
        ({"bytes_": 2**31}, "must be less than 2,147,483,648"),
        ({"most": 2e6}, "must be at most 1500000.5"),
        ({"share": "much"}, "must be a number"),
        ({"name": ""}, "must not be empty"),
        ({"name": "x" * 2001}, "has more than 2,000 characters"),
        ({"name": 7}, "must be a text"),
        ({"turns": []}, "must not be empty"),
        ({"turns": [1, 2, 3, 4]}, "has more than 3 entries"),
        ({"turns": 5}, "must be a list"),
        ({"pair": [1]}, "needs at least 2 entries"),
        ({"side": "test"}, "must be 'train' or 'heldout'"),
        ({"side": "heldout"}, "is closed"),
    ],
)
def test_an_error_is_told_without_words_of_programs(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError) as found:
        Form.model_validate(given)
    [error] = found.value.errors(include_url=False)
    assert error_text(error) == words
