"""The type of a field: a part of an answer that can be compared between people, with its level of measurement."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainer.metrics.agreement import Level  # loads numpy, which most readers of a kind do not need


@dataclass(frozen=True)
class Field:
    """`sql` yields (item, value) from `answer.content`; `params` fill its placeholders. `item` tells units within a task
    apart (a criterion, a pair of responses); a null value is a missing rating."""

    key: str
    label: str
    level: "Level"
    sql: str
    params: tuple[str, ...] = ()
    shown: Mapping[Any, str] = field(default_factory=dict)
    items: str = ""  # what `item` is, if a task has several units

    def value(self, text: str) -> str | float:
        return text if self.level == "nominal" else float(text)

    def says(self, value: str | float) -> str:
        """Words for a value, for people."""
        if isinstance(value, float):
            return self.shown.get(int(value), f"{value:g}")
        return self.shown.get(value, value)
