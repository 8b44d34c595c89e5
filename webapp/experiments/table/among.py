"""The condition to be one of many known runs."""

from collections.abc import Collection

from django.db.models import BooleanField, F, Func, TextField, Value


class Among(Func):
    """Whether a column holds one of the ids: as one array, because the database reads ten thousand values one after the other slowly."""

    template = "%(expressions)s::bigint[])"
    arg_joiner = " = ANY("
    output_field = BooleanField()

    def __init__(self, name: str, ids: Collection[int]) -> None:
        # as one text: Django and the driver would write thousands of ids one by one
        super().__init__(F(name), Value(f"{{{','.join(map(str, ids))}}}", output_field=TextField()))
