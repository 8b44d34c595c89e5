"""The findings of a part: rows, each a number with its mark, or the reason why there is none."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

Kind = Literal["at most", "at least"]


@dataclass(frozen=True)
class MeasureSetting:
    """Device and size: `small` goes through the code with little of everything. `folder` is empty and belongs to the part."""

    device: str
    small: bool
    folder: Path


@dataclass(frozen=True)
class MeasureRow:
    """A row. `mark` is the largest or least allowed `value`, if there is one. A value of None was not measured, and `why` says why."""

    name: str
    value: float | None
    unit: str = ""
    mark: float | None = None
    kind: Kind = "at most"
    why: str = ""
    goal: bool = False
    """The mark is one to beat, published by others: missing it is not an error."""

    @property
    def ok(self) -> bool | None:
        """Whether the value meets its mark; None without a mark."""
        if self.value is None or self.mark is None or self.value != self.value:
            return None if self.value is None or self.mark is None else False
        return self.value <= self.mark if self.kind == "at most" else self.value >= self.mark

    @property
    def verdict(self) -> str:
        if self.value is None:
            return "left out"
        return {None: "measured", True: "ok", False: "below the goal" if self.goal else "WRONG"}[self.ok]


@dataclass
class TakenPart:
    """A part that was taken, or the reason why not: `failed` if it broke."""

    name: str
    rows: list[MeasureRow] = field(default_factory=list)
    seconds: float = 0.0
    failed: str = ""

    @property
    def ok(self) -> bool:
        return not self.failed and not any(row.verdict == "WRONG" for row in self.rows)

    def record(self) -> dict[str, Any]:
        rows = [asdict(row) | {"verdict": row.verdict} for row in self.rows]
        return {"seconds": round(self.seconds, 1), "failed": self.failed, "rows": rows}

    @classmethod
    def of(cls, name: str, record: dict[str, Any]) -> "TakenPart":
        rows = [MeasureRow(**{key: value for key, value in row.items() if key != "verdict"}) for row in record["rows"]]
        return cls(name, rows, record["seconds"], record["failed"])


Run = Callable[[MeasureSetting], list[MeasureRow]]


def left_out(name: str, why: str) -> MeasureRow:
    return MeasureRow(name, None, why=why)


def table(parts: list[TakenPart]) -> str:
    lines = []
    for part in parts:
        lines.append(f"({part.name}) {part.seconds:.0f} s{f', FAILED: {part.failed}' if part.failed else ''}")
        lines += [_line(row) for row in part.rows]
    return "\n".join(lines)


def _line(row: MeasureRow) -> str:
    value = "–" if row.value is None else _number(row.value)
    mark = "" if row.mark is None else f"{'<=' if row.kind == 'at most' else '>='} {_number(row.mark)}"
    return f"  {row.name:56}{value:>12} {row.unit:14}{mark:>12}  {row.verdict}{f': {row.why}' if row.why else ''}"


def _number(value: float) -> str:
    size = abs(value)
    return "0" if size == 0 else f"{value:.2e}" if size < 1e-3 else f"{value:,.3g}" if size < 1000 else f"{value:,.0f}"
