"""The condition to be one of many known runs."""

from collections.abc import Collection

from django.db.models import BooleanField, F, Func, TextField, Value


def array_text(ids: Collection[int]) -> str:
    """The ids as the text of an array of Postgres: Django and the driver would write thousands of them one by one."""
    return f"{{{','.join(map(str, ids))}}}"


class Among(Func):
    """Whether a column holds one of the ids: as one array, because the database reads ten thousand values one after the other slowly."""

    template = "%(expressions)s::bigint[])"
    arg_joiner = " = ANY("
    output_field = BooleanField()

    def __init__(self, name: str, ids: Collection[int]) -> None:
        super().__init__(F(name), Value(array_text(ids), output_field=TextField()))
