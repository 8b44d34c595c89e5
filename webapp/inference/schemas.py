"""What several rooms give over the API."""

from ninja import Schema


class ModelName(Schema):
    id: int
    name: str
