"""Verdicts that were given elsewhere become verdicts of a judge here. It replays them and is never called."""

import io
import json
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice

from trainer.contracts import Example
from trainer.judges.calls import expand
from trainer.judges.inputs import InputProblem, JudgeInput, of_example
from webapp.accounts.models import Membership
from webapp.datasets.models import DatasetVersion
from webapp.datasets.queries import examples_by_key
from webapp.inference.endpoints.queries import newest_recorded, recorded_texts
from webapp.inference.endpoints.recorded_outputs import add_recorded
from webapp.inference.endpoints.services import create_endpoint
from webapp.inference.models import Endpoint

from ..asking.calls import CallCounts, judge_calls
from ..judges.services import create_judge, new_version
from ..lines.sides import SIDE_NAMES
from ..models import MAX_NAME, Judge, JudgeVersion
from .formats.base import RecordedPair

NOTE = "Verdicts recorded elsewhere"
BATCH = 1_000  # records in memory
NOTHING = "null"  # what stands for a verdict that was never given: read as missing


@dataclass
class Kept:
    """The kept part of one judge's records. `version` is None if no pair is matched: such a judge is not made.

    `unmatched` counts pairs without an example of that key, or whose example lacks what a pairwise judge needs. `doubled`
    counts verdicts on a question whose content another pair has as well; the first one is kept.
    """

    judge: str
    version: JudgeVersion | None = None
    pairs: int = 0
    unmatched: int = 0
    doubled: int = 0
    counts: CallCounts = field(default_factory=CallCounts)
    before: int = 0  # outputs of the endpoint up to this id are older than these records


def keep_recorded(
    membership: Membership, data: DatasetVersion, records: Iterable[RecordedPair], both: Container[str]
) -> list[Kept]:
    """Makes a pairwise judge on a recorded endpoint for each judge of the records, with a stored verdict per order asked.

    `both` names the judges that were asked in both orders. Records are read once; at most `BATCH` of them are in memory, with
    their examples. Pairs are found by the keys of the version's examples, whose labels and texts count. The same records
    again change nothing. Raises Invalid if a judge that is called has the name, or if a record contradicts the one that is
    kept.
    """
    found: dict[str, Kept] = {}
    remaining = iter(records)
    while batch := list(islice(remaining, BATCH)):
        examples = examples_by_key(data, [record.pair for record in batch])
        for judge, mine in _by_judge(batch).items():
            kept = found.setdefault(judge, Kept(judge))
            known = [record for record in mine if _is_pair(examples.get(record.pair))]
            kept.pairs += len(mine)
            kept.unmatched += len(mine) - len(known)
            if known:
                _keep(membership, kept, known, examples, "both" if judge in both else "given")
    return [found[judge] for judge in sorted(found)]


def _by_judge(records: Iterable[RecordedPair]) -> dict[str, list[RecordedPair]]:
    found: dict[str, list[RecordedPair]] = defaultdict(list)
    for record in records:
        found[record.judge].append(record)
    return found


def _is_pair(example: Example | None) -> bool:
    return example is not None and len(example.responses) > 1


def _keep(
    membership: Membership, kept: Kept, records: Iterable[RecordedPair], examples: Mapping[str, Example], order: str
) -> None:
    if kept.version is None:
        kept.version = _version(membership, kept.judge[:MAX_NAME], order)
        kept.before = newest_recorded(kept.version.endpoint_id)
    version = kept.version
    outputs: dict[str, str] = {}
    inputs: list[JudgeInput] = []
    for record in records:
        given = of_example(examples[record.pair], pair=True)
        try:
            calls = expand(version.resolved, version.digest, given)
        except InputProblem:
            kept.unmatched += 1
            continue
        inputs.append(given)
        for call in calls:
            text = _said(record, call.subject["order"])
            kept.doubled += outputs.setdefault(call.key, text) != text
    kept.doubled += _without_said(version.endpoint, outputs, kept.before)
    _add(membership, version.endpoint, outputs)
    kept.counts.merge(judge_calls(version, inputs))


def _without_said(endpoint: Endpoint, outputs: dict[str, str], before: int) -> int:
    """Takes out verdicts that contradict an earlier batch of these records, and counts them; the first verdict is kept.

    Verdicts that contradict what was recorded `before` stay in: they are refused later.
    """
    told = recorded_texts(endpoint.pk, outputs, after=before)
    other = [key for key, text in told.items() if outputs[key] != text]
    for key in other:
        del outputs[key]
    return len(other)


def _version(membership: Membership, name: str, order: str) -> JudgeVersion:
    """The version of the judge of that name that replays in these orders; it is made if there is none."""
    spec = {"kind": "pairwise", "order": order}
    known = Judge.objects.filter(workspace=membership.workspace, name=name, kind="pairwise", archived_at=None).first()
    newest = known.versions.select_related("endpoint").order_by("-number").first() if known else None
    if known and newest and newest.endpoint.kind == Endpoint.Kind.RECORDED:
        return new_version(membership, known, spec=spec, endpoint=newest.endpoint, note=NOTE)
    endpoint = create_endpoint(membership, Endpoint.Kind.RECORDED, name=f"{name[: MAX_NAME - 11]} (recorded)")
    return create_judge(membership, name=name, spec=spec, endpoint=endpoint, note=NOTE)


def _said(record: RecordedPair, order: str) -> str:
    """The judge's answer in the form of a pairwise judge here; what could not be read stays to the letter."""
    given = order == "given"
    side, raw = (record.given, record.raw_given) if given else (record.swapped, record.raw_swapped)
    if side is None:
        return raw or NOTHING
    reasons = [record.reason] if given and record.reason else []
    return json.dumps({"reasons": reasons, "verdict": SIDE_NAMES[side]}, ensure_ascii=False)


def _add(membership: Membership, endpoint: Endpoint, outputs: Mapping[str, str]) -> None:
    lines = "".join(json.dumps({"key": key, "text": text}) + "\n" for key, text in outputs.items())
    if lines:
        add_recorded(membership, endpoint, io.BytesIO(lines.encode()))
