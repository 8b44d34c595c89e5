"""Reads of judges, versions and verdicts."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from django.db.models import Count, Prefetch, QuerySet

from trainer.contracts import Example
from trainer.judges.calls import Call, expand, sample_keys
from trainer.judges.inputs import InputProblem, JudgeInput
from webapp.core.numbers import whole
from webapp.datasets.models import DatasetVersion, VersionMember

from .models import Judge, JudgeVersion, Trial, Verdict

NOT_CALLED = "not called yet"
INPUTS = 100  # looked up at a time
SAMPLES = 256  # of a question, on its page


def judges(workspace_id: int, *, archived: bool = False) -> QuerySet[Judge]:
    """Those on the list, or the archived ones; each with `latest`, a list of its newest version, and `version_count`."""
    newest = JudgeVersion.objects.order_by("judge_id", "-number").distinct("judge_id").select_related("endpoint")
    rows = Judge.objects.filter(workspace_id=workspace_id, archived_at__isnull=not archived)
    return rows.annotate(version_count=Count("versions")).prefetch_related(
        Prefetch("versions", queryset=newest, to_attr="latest")
    )


def versions(judge: Judge) -> QuerySet[JudgeVersion]:
    """Newest first."""
    return judge.versions.select_related("judge", "endpoint", "created_by").order_by("-number")


def usable_versions(workspace_id: int, kinds: Iterable[str]) -> QuerySet[JudgeVersion]:
    """Of judges on the list, of these kinds, whose endpoint is there; by name, newest first."""
    rows = JudgeVersion.objects.filter(judge__workspace_id=workspace_id, judge__kind__in=kinds)
    rows = rows.filter(judge__archived_at=None, endpoint__archived_at=None)
    return rows.select_related("judge", "endpoint").order_by("judge__name", "-number")


def version_named(workspace_id: int, text: str) -> JudgeVersion | None:
    """The version that is written `Grader v2`: of a judge on the list whose endpoint is there."""
    name, _, number = text.rpartition(" v")
    rows = JudgeVersion.objects.filter(judge__workspace_id=workspace_id, judge__name=name, number=whole(number, 9) or 0)
    rows = rows.filter(judge__archived_at=None, endpoint__archived_at=None)
    return rows.select_related("judge", "endpoint").first()


def why_not_named(workspace_id: int, text: str) -> str:
    """Why `version_named` finds nothing under `text`, and what helps."""
    name, _, number = text.rpartition(" v")
    rows = JudgeVersion.objects.filter(judge__workspace_id=workspace_id, judge__name=name, number=whole(number, 9) or 0)
    version = rows.select_related("judge", "endpoint").first()
    if version is None:
        return f"no judge version is called {text!r}; name it with its version, such as 'Grader v2'"
    if version.judge.archived_at:
        return f"{text!r} is archived; restore it on its page, or name another judge"
    return f"{text!r} has no endpoint that can be asked: {version.endpoint.name!r} is archived. Restore it, or name another judge"


def states(version: JudgeVersion) -> dict[str, int]:
    """How many stored verdicts are in each state; states without any are 0."""
    rows = Verdict.objects.filter(version=version).values_list("state").annotate(n=Count("id"))
    return {**dict.fromkeys(Verdict.State.values, 0), **dict(rows)}


def verdict_list(version: JudgeVersion, state: str = "") -> QuerySet[Verdict]:
    """Without what was sent: lists do not show it. In no order; see `webapp.core.paging`."""
    rows = Verdict.objects.filter(version=version).defer("request")
    return rows.filter(state=state) if state else rows


def verdicts(version: JudgeVersion, keys: Iterable[str]) -> dict[str, Verdict]:
    """Key -> verdict, for those that are stored."""
    rows = Verdict.objects.filter(version=version, key__in=list(keys)).defer("request")
    return {row.key: row for row in rows}


def samples(row: Verdict) -> list[Verdict]:
    """All stored samples of the verdict's question, itself among them, in their order; those before SAMPLES."""
    if not row.request:
        return [row]
    keys = sample_keys(row.version.digest, row.request, SAMPLES)
    found = verdicts(row.version, keys)
    return [found[key] for key in keys if key in found] or [row]


def stored_keys(version: JudgeVersion, keys: Iterable[str], *, failed: bool = False) -> set[str]:
    """Those keys that need no call: failed calls do, unless `failed` takes them for answered."""
    rows = Verdict.objects.filter(version=version, key__in=list(keys))
    return set((rows if failed else rows.exclude(state=Verdict.State.FAILED)).values_list("key", flat=True))


def trials(judge: Judge) -> QuerySet[Trial]:
    """Newest first, without their results."""
    return judge.trials.select_related("before", "after", "created_by").defer("results", "spec").order_by("-id")


@dataclass(frozen=True)
class Answer:
    """A call with what is stored for it, as trainer.judges.combine takes it. `verdict_id` None: `state` is "uncalled".

    `subject` is this call's: the stored row may have been made for the same content elsewhere.
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
) -> Iterator[tuple[JudgeInput, list[Answer]]]:
    """Every input with what the version's store says on it, in order; nothing is called.

    Inputs that lack something come with an empty list, and are counted by reason in `unusable`.
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


def _answer(call: Call, row: Verdict | None) -> Answer:
    if row is None:
        return Answer(call, "uncalled", None, "", NOT_CALLED, None)
    return Answer(call, row.state, row.parsed, row.raw, row.problem, row.pk)


def examples_by_key(version: DatasetVersion, keys: Sequence[str]) -> dict[str, Example]:
    """Those of the examples that the version has, by key."""
    found: dict[str, Example] = {}
    wanted = iter(dict.fromkeys(keys))
    while batch := list(islice(wanted, 500)):
        members = VersionMember.objects.filter(
            version=version, example__key__in=batch, example__dataset_id=version.dataset_id
        )
        for line in members.values_list("example__canonical", flat=True):
            example = Example.model_validate_json(line)
            found[example.key] = example
    return found
