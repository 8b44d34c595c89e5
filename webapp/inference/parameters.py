"""The parameters of the addresses of models and endpoints."""

from typing import Annotated

from ninja import Path
from pydantic import Field

Id = Annotated[int, Field(ge=1, le=2**63 - 1)]
ModelId = Path[Id]
EndpointId = Path[Id]
