"""Makes a task for people of two answers that somebody saw side by side."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trainer.contracts import Example, Message, Response
from webapp.accounts.models import Membership
from webapp.annotation.models import Project, Task
from webapp.annotation.projects import collecting
from webapp.core.problems import Invalid
from webapp.datasets.models import Example as Row
from webapp.inference.models import RegisteredModel


@dataclass(frozen=True)
class Tried:
    """An answer as it was seen. `sampling` is kept with the example, so that it can be had again."""

    model: int
    text: str
    sampling: dict[str, Any]


def send(
    membership: Membership,
    messages: Sequence[Message],
    tried: tuple[Tried, Tried],
    *,
    example: int | None = None,
    project: int | None = None,
    new_project: str = "",
) -> tuple[Project, Task, bool]:
    """Like `collecting.collect`. `example`: where the prompt comes from; the pair stays on its side of the split.

    Raises Invalid at `a.model`, `b.model`, `b.text` or `example` as well.
    """
    record = _record(membership, messages, tried, example)
    return collecting.collect(membership, record, project, " ".join(new_project.split()))


def _record(
    membership: Membership, messages: Sequence[Message], tried: tuple[Tried, Tried], example: int | None
) -> Example:
    problems: dict[str, str] = {}
    names = _names(membership, tried, problems)
    if tried[0].text == tried[1].text:
        problems["b.text"] = "both answers are the same, word for word, so there is nothing to compare"
    origin = _origin(membership, example, problems)
    if problems:
        raise Invalid("These answers cannot be compared.", problems)
    # in an order that does not depend on which stood left; people see them in either
    sides = sorted(zip(names, tried, strict=True), key=lambda side: (side[0], side[1].text))
    ids = (collecting.A, collecting.B)
    return Example(
        key=_key(messages, [(name, each.text) for name, each in sides]),
        prompt=tuple(messages),
        split=origin.record.split if origin else None,
        group=origin.record.group if origin else "",
        domain=origin.record.domain if origin else "",
        source="tried",
        responses=tuple(
            Response(id=each, text=side.text, origin=name) for each, (name, side) in zip(ids, sides, strict=True)
        ),
        meta={
            "generated": {each: {"model": name, **side.sampling} for each, (name, side) in zip(ids, sides, strict=True)}
        },
    )


def _names(membership: Membership, tried: tuple[Tried, Tried], problems: dict[str, str]) -> list[str]:
    rows = RegisteredModel.objects.filter(workspace_id=membership.workspace_id, id__in=[each.model for each in tried])
    known = dict(rows.values_list("id", "name"))
    for side, each in zip(("a", "b"), tried, strict=True):
        if each.model not in known:
            problems[f"{side}.model"] = "this workspace has no such model"
    return [known.get(each.model, "") for each in tried]


def _origin(membership: Membership, example: int | None, problems: dict[str, str]) -> Row | None:
    if example is None:
        return None
    found = Row.objects.filter(dataset__workspace_id=membership.workspace_id, id=example).first()
    if found is None:
        problems["example"] = "this workspace has no such example"
    return found


def _key(messages: Sequence[Message], answers: list[tuple[str, str]]) -> str:
    """A key that the same prompt with the same answers of the same models has again."""
    said = json.dumps([[message.model_dump() for message in messages], answers], sort_keys=True)
    return f"tried-{hashlib.sha256(said.encode()).hexdigest()[:24]}"
