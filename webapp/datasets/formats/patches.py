"""The parts that a layout cannot hold, as changes to the importer's result for a row. Exports write them, and imports apply them."""

from typing import Any

from pydantic_core import from_json, to_json

from webapp.core.text.json_diff import MISSING, differing

Data = dict[str, Any]
COLUMN = "touchstone"
AGAIN = "again"  # marks a further row of an example whose first row has everything


def written(plain: Data, canonical: str, format: str) -> str:
    """The text of the column: the format whose importer made `plain`, and the changes from that to the example with this canonical text.

    Each change is [path, value], or [path] for a field that is removed.
    """
    changes = [
        [list(change.where)] if change.after is MISSING else [list(change.where), change.after]
        for change in differing(plain, from_json(canonical))
    ]
    return to_json({"format": format, "changes": changes}).decode()


def applied(plain: Data, changes: list[Any]) -> Data:
    """`plain` with the changes. Raises ValueError if they do not fit it: the row was edited too far."""
    try:
        for path, *value in _last_first(changes):
            _change(plain, path, value)
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError("does not fit the row any more") from error
    return plain


def _last_first(changes: list[Any]) -> list[Any]:
    """Orders changes so that removals at the ends of lists come last to first, and none moves before its turn."""
    stays = [change for change in changes if len(change) == 2]
    return stays + [change for change in reversed(changes) if len(change) == 1]


def _change(data: Any, path: list[Any], value: list[Any]) -> None:
    *way, last = path
    for step in way:
        # an importer that reads a column since the file was written leaves less in `meta`
        data = data.setdefault(step, {}) if isinstance(data, dict) else data[step]
    if not value and isinstance(data, dict):
        data.pop(last, None)
    elif not value:
        del data[last]
    elif isinstance(data, list) and last == len(data):
        data.append(value[0])
    else:
        data[last] = value[0]
