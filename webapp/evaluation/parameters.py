"""Parameters in the addresses of evaluations."""

from typing import Annotated

from ninja import Header, Path
from pydantic import Field

EvaluationId = Path[Annotated[int, Field(ge=1, lt=2**63)]]
Number = Path[Annotated[int, Field(ge=1, lt=2**31)]]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        max_length=64,
        description="If you send the key again with the same body, you get the same evaluation; with another body, 422",
    ),
]
