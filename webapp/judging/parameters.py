"""Parameters in addresses and bodies of the API of judges."""

from typing import Annotated

from ninja import Path
from pydantic import Field

RowId = Annotated[int, Field(ge=1, lt=2**63)]
VersionNumber = Annotated[int, Field(ge=1, lt=2**31)]
Id = Annotated[int, Path(ge=1, le=2**63 - 1)]
Number = Annotated[int, Path(ge=1, lt=2**31)]
