"""The condition to be one of many known runs."""

from collections.abc import Collection

from django.contrib.postgres.fields import ArrayField
from django.db.models import BigIntegerField, BooleanField, F, Func, Value


class Among(Func):
    """Whether a column holds one of the ids: as one array, because the database reads ten thousand values one after the other slowly."""

    template = "%(expressions)s::bigint[])"
    arg_joiner = " = ANY("
    output_field = BooleanField()

    def __init__(self, name: str, ids: Collection[int]) -> None:
        super().__init__(F(name), Value(list(ids), output_field=ArrayField(BigIntegerField())))
