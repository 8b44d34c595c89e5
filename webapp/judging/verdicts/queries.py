"""Reads of stored verdicts: all of a version, or what is stored for the calls that inputs would make."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from django.db.models import Count, QuerySet

from trainer.judges.calls import Call, expand, sample_keys
from trainer.judges.inputs import InputProblem, JudgeInput

from ..models import JudgeVersion, Verdict

NOT_CALLED = "not called yet"
INPUTS = 100  # looked up at a time
SAMPLES = 256  # of a question, on its page


def states(version: JudgeVersion) -> dict[str, int]:
    """The number of stored verdicts that are in each state; states without any are 0."""
    rows = Verdict.objects.filter(version=version).values_list("state").annotate(n=Count("id"))
    return {**dict.fromkeys(Verdict.State.values, 0), **dict(rows)}


def verdict_list(version: JudgeVersion, state: str = "") -> QuerySet[Verdict]:
    """A version's verdicts, unordered (see `webapp.core.database.paging`) and without `request`, which lists do not show."""
    rows = Verdict.objects.filter(version=version).defer("request")
    return rows.filter(state=state) if state else rows


def verdicts(version: JudgeVersion, keys: Iterable[str]) -> dict[str, Verdict]:
    """The stored verdicts among these keys, by key."""
    rows = Verdict.objects.filter(version=version, key__in=list(keys)).defer("request")
    return {row.key: row for row in rows}


def samples(row: Verdict) -> list[Verdict]:
    """All stored samples of the verdict's question in their order, itself among them; at most the first SAMPLES."""
    if not row.request:
        return [row]
    keys = sample_keys(row.version.digest, row.request, SAMPLES)
    found = verdicts(row.version, keys)
    return [found[key] for key in keys if key in found] or [row]


def stored_keys(version: JudgeVersion, keys: Iterable[str], *, failed: bool = False) -> set[str]:
    """The keys that need no call. A failed call needs one, unless `failed` takes it for answered."""
    rows = Verdict.objects.filter(version=version, key__in=list(keys))
    return set((rows if failed else rows.exclude(state=Verdict.State.FAILED)).values_list("key", flat=True))


@dataclass(frozen=True)
class CallAnswer:
    """A call with what is stored for it, as trainer.judges.combine takes it. Without a verdict `state` is "uncalled".

    `subject` is that of this call: the stored row may have been made for the same content elsewhere.
    """

    call: Call
    state: str
    parsed: dict[str, Any] | None
    raw: str
    problem: str
    verdict_id: int | None

    @property
    def subject(self) -> dict[str, Any]:
        return self.call.subject


def answers(
    version: JudgeVersion, inputs: Iterable[JudgeInput], draw: int = 0, unusable: Counter[str] | None = None
) -> Iterator[tuple[JudgeInput, list[CallAnswer]]]:
    """Every input, in order, with what is stored for its calls; nothing is called.

    An input that lacks something comes with an empty list, and `unusable` counts it by its reason.
    """
    remaining, spec = iter(inputs), version.resolved
    while chunk := list(islice(remaining, INPUTS)):
        asked: list[tuple[JudgeInput, list[Call]]] = []
        for given in chunk:
            try:
                asked.append((given, expand(spec, version.digest, given, draw)))
            except InputProblem as problem:
                asked.append((given, []))
                if unusable is not None:
                    unusable[str(problem)] += 1
        found = verdicts(version, [call.key for _, calls in asked for call in calls])
        for given, calls in asked:
            yield given, [_answer(call, found.get(call.key)) for call in calls]


def _answer(call: Call, row: Verdict | None) -> CallAnswer:
    if row is None:
        return CallAnswer(call, "uncalled", None, "", NOT_CALLED, None)
    return CallAnswer(call, row.state, row.parsed, row.raw, row.problem, row.pk)
