"""Records of the API that several rooms use."""

from ninja import Schema


class ModelName(Schema):
    id: int
    name: str
