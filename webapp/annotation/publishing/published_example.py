"""Changes an example and its earlier labels when a project's judgements are published into it.

Pure functions of the example in the base, the judgements and the settings. Pairs become preferences; a judgement for which an example has
no field is kept under `meta.annotation`, by project.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from trainer.contracts.plurals import with_noun
from webapp.datasets.formats.label_origin import IMPORTED, RUBRIC_BY, is_imported, signature_of

from ..kinds import TaskKind, get_kind
from ..kinds.values import STRENGTHS, WITHOUT_STRENGTH
from ..models import Project, PublishedCase, Task

Fate, Reason = PublishedCase.Fate, PublishedCase.Reason
SAYS = 200  # characters of what a label says


@dataclass(frozen=True)
class GivenJudgement:
    """One judgement to publish: its rater, its content, and the answers behind it."""

    task: Task
    rater: str
    content: dict[str, Any]
    source: str
    agreement: float | None
    answers: int = 1


@dataclass(frozen=True)
class LabelFate:
    """The fate of one label. `answers`: the number of this project's answers that it represents."""

    fate: str
    reason: str
    example: str
    whose: str
    says: str
    task: int | None = None
    answers: int = 0


@dataclass
class ChangedExample:
    """An example with judgements in it: its new content, and the fate of each label that it had."""

    content: dict[str, Any]
    cases: list[LabelFate] = field(default_factory=list)


def rater_suffix(project: Project) -> str:
    """The ending of the names of this project's raters."""
    return f"@project-{project.pk}"


def with_judgements(
    content: dict[str, Any], project: Project, given: Sequence[GivenJudgement], what: str, replace: bool
) -> ChangedExample:
    """`content` of the base with these judgements. They replace earlier ones of the project, and with `replace` also other people's labels
    on the subjects judged now."""
    made = without_own(content, project, given[0].task.example.content)
    changed = made.content
    kind = get_kind(project.kind)
    preferences = [each for judgement in given for each in _preferences(kind, judgement)]
    if preferences:
        stay = _others(changed, preferences, given, project, replace, made.cases)
        changed["preferences"] = stay + preferences
    else:
        _keep(changed, changed.get("preferences", []), made.cases)
    if kind.writes_rubric and what == "resolutions":
        _rubric(changed, given[-1], made.cases)
    note = {
        "project": project.name,
        "kind": project.kind,
        "what": what,
        "tasks": [_note(kind, each, what) for each in given],
        **kind.summary([(each.task.subject, each.content) for each in given]),
    }
    meta = changed.get("meta", {})
    changed["meta"] = {**meta, "annotation": {**_notes(meta), str(project.pk): note}}
    return made


def without_own(content: dict[str, Any], project: Project, original: dict[str, Any]) -> ChangedExample:
    """`content` without what this project published into it earlier. Its rubric is replaced by that of the `original`, the example as it
    was annotated."""
    made, key = ChangedExample(dict(content)), content["key"]
    own = [each for each in content.get("preferences", ()) if _rater(each).endswith(rater_suffix(project))]
    made.cases += [_case(Fate.REPLACED, Reason.EARLIER, key, each) for each in own]
    if own:
        made.content["preferences"] = [each for each in content["preferences"] if each not in own]
    meta = dict(content.get("meta", {}))
    notes = _notes(meta)
    note = notes.pop(str(project.pk), None)
    if note and get_kind(project.kind).only_noted:
        told = [each for each in note.get("tasks", ()) if isinstance(each, dict)]
        made.cases += [
            LabelFate(Fate.REPLACED, Reason.EARLIER, key, _noted(each, project), _told(each)) for each in told
        ]
    if str(meta.get(RUBRIC_BY, "")).endswith(rater_suffix(project)):
        made.cases.append(LabelFate(Fate.REPLACED, Reason.EARLIER, key, meta.pop(RUBRIC_BY), _criteria(content)))
        made.content["rubric"] = original.get("rubric")
    if note:
        meta["annotation"] = notes
        if not notes:
            del meta["annotation"]
    if meta != content.get("meta", {}):
        made.content["meta"] = meta
    return made


def _rater(preference: dict[str, Any]) -> str:
    return str(preference.get("rater", ""))


def _notes(meta: dict[str, Any]) -> dict[str, Any]:
    noted = meta.get("annotation")
    return dict(noted) if isinstance(noted, dict) else {}  # an import may use the name for something else


def _others(
    content: dict[str, Any],
    new: list[dict[str, Any]],
    given: Sequence[GivenJudgement],
    project: Project,
    replace: bool,
    cases: list[LabelFate],
) -> list[dict[str, Any]]:
    """Earlier preferences that stay. With `replace`, none about the pairs judged now; a rationale only replaces the preference that it
    explains."""
    others = list(content.get("preferences", ()))
    stay = others
    explained = [found for each in given if (found := _explained(get_kind(project.kind), each)) is not None]
    if replace and explained:
        stay = [each for each in others if each not in explained]
    elif replace:
        pairs = {frozenset((each["a"], each["b"])) for each in new}
        stay = [each for each in others if frozenset((each["a"], each["b"])) not in pairs]
    cases += [_case(Fate.REPLACED, Reason.JUDGED, content["key"], each) for each in others if each not in stay]
    _keep(content, stay, cases)
    return stay


def _keep(content: dict[str, Any], stay: list[dict[str, Any]], cases: list[LabelFate]) -> None:
    for each in stay:
        fate, reason = (Fate.IMPORTED, "") if is_imported(_rater(each)) else (Fate.KEPT, Reason.OTHERS)
        cases.append(_case(fate, reason, content["key"], each))


def _rubric(content: dict[str, Any], given: GivenJudgement, cases: list[LabelFate]) -> None:
    if content.get("rubric"):
        by = content.get("meta", {}).get(RUBRIC_BY, IMPORTED)
        cases.append(LabelFate(Fate.REPLACED, Reason.JUDGED, content["key"], by, _criteria(content)))
    content["rubric"] = given.content["rubric"]
    content["meta"] = {**content.get("meta", {}), RUBRIC_BY: given.rater}


def _case(fate: str, reason: str, key: str, preference: dict[str, Any]) -> LabelFate:
    said = WITHOUT_STRENGTH.get(preference.get("verdict", "")) or STRENGTHS.get(str(preference.get("strength")), "")
    said = f"{preference['a']} against {preference['b']}: {said}"
    return LabelFate(fate, reason, key, signature_of(_rater(preference)), said[:SAYS])


def _criteria(content: dict[str, Any]) -> str:
    count = len((content.get("rubric") or {}).get("criteria", ()))
    return f"a rubric of {with_noun(count, 'criteria')}"


def _noted(task: dict[str, Any], project: Project) -> str:
    return str(task.get("rater") or f"{task.get('source')}{rater_suffix(project)}")


def _told(task: dict[str, Any]) -> str:
    values = task.get("grades") or task.get("ratings") or {}
    return ", ".join(f"{name} {value}" for name, value in values.items())[:SAYS] if isinstance(values, dict) else ""


def _explained(kind: TaskKind, given: GivenJudgement) -> dict[str, Any] | None:
    return kind.explained(given.task.subject, given.task.example.content)


def _preferences(kind: TaskKind, given: GivenJudgement) -> list[dict[str, Any]]:
    return kind.preferences(given.content, given.task.subject, given.task.example.content, given.rater)


def _note(kind: TaskKind, given: GivenJudgement, what: str) -> dict[str, Any]:
    """A judgement for which an example has no field, and its source."""
    found: dict[str, Any] = {"subject": given.task.subject, "source": given.source}
    if given.agreement is not None:
        found["agreement"] = round(given.agreement, 4)
    if what == "answers":
        found["rater"] = given.rater
    return found | kind.note(given.content, what)
