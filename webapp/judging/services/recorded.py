"""Verdicts that were given elsewhere become verdicts of a judge here: replayed, never called, open down to the raw text."""

import io
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from trainer.contracts import Example
from trainer.judges.calls import expand
from trainer.judges.inputs import InputProblem, JudgeInput, of_example
from webapp.accounts.models import Membership
from webapp.datasets.models import DatasetVersion
from webapp.datasets.queries import stream_canonical
from webapp.inference.models import Endpoint
from webapp.inference.services import add_recorded, create_endpoint
from webapp.judging.models import MAX_NAME, Judge, JudgeVersion
from webapp.judging.recorded import Pairwise

from .calls import Counts, judge_calls
from .judges import create_judge, new_version

WORDS = {-1: "A", 0: "tie", 1: "B"}
NOTE = "Verdicts recorded elsewhere"
LINES = 10_000  # added to an endpoint at a time
NOTHING = "null"  # what stands for a verdict that was never given: read as missing


@dataclass(frozen=True)
class Kept:
    """`version` is None where no pair is matched: such a judge is not made.

    `unmatched`: pairs without an example of that key, or whose example lacks what a pairwise judge is shown. `doubled`: verdicts on a question whose content another pair has as well; the first stands.
    """

    judge: str
    version: JudgeVersion | None
    pairs: int
    unmatched: int
    doubled: int
    counts: Counts


def keep_recorded(membership: Membership, data: DatasetVersion, records: Iterable[Pairwise]) -> list[Kept]:
    """A pairwise judge on a recorded endpoint for each judge of the records, with a stored verdict per order asked.

    Pairs are found by the keys of the version's examples; label and texts are the examples'. The same records again
    change nothing. Raises Invalid where a name is taken by a judge that is called, or where a record says something
    else than the one that is kept.
    """
    by_judge: dict[str, dict[str, Pairwise]] = defaultdict(dict)
    for record in records:
        by_judge[record.judge][record.pair] = record
    return [_keep(membership, data, judge, pairs) for judge, pairs in sorted(by_judge.items())]


def _keep(membership: Membership, data: DatasetVersion, judge: str, pairs: dict[str, Pairwise]) -> Kept:
    found = list(_inputs(data, pairs))
    if not found:
        return Kept(judge, None, len(pairs), len(pairs), 0, Counts())
    both = any(record.orders == "both" for record in pairs.values())
    version = _version(membership, judge[:MAX_NAME], "both" if both else "given")
    outputs: dict[str, str] = {}
    inputs: list[JudgeInput] = []
    doubled = 0
    for given in found:
        try:
            calls = expand(version.resolved, version.digest, given)
        except InputProblem:
            continue
        inputs.append(given)
        for call in calls:
            text = _said(pairs[given.example], call.subject["order"])
            doubled += outputs.setdefault(call.key, text) != text
    _add(membership, version.endpoint, outputs)
    counts = judge_calls(version, inputs)
    return Kept(judge, version, len(pairs), len(pairs) - len(inputs), doubled, counts)


def _version(membership: Membership, name: str, order: str) -> JudgeVersion:
    """The judge of that name that replays, asked in these orders; made where there is none."""
    spec = {"kind": "pairwise", "order": order}
    known = Judge.objects.filter(workspace=membership.workspace, name=name, kind="pairwise", archived_at=None).first()
    newest = known.versions.select_related("endpoint").order_by("-number").first() if known else None
    if known and newest and newest.endpoint.kind == Endpoint.Kind.RECORDED:
        return new_version(membership, known, spec=spec, endpoint=newest.endpoint, note=NOTE)
    endpoint = create_endpoint(membership, Endpoint.Kind.RECORDED, name=f"{name[: MAX_NAME - 11]} (recorded)")
    return create_judge(membership, name=name, spec=spec, endpoint=endpoint, note=NOTE)


def _inputs(data: DatasetVersion, pairs: dict[str, Pairwise]) -> Iterator[JudgeInput]:
    for _, line in stream_canonical(data):
        example = Example.model_validate_json(line)
        if example.key in pairs and len(example.responses) > 1:
            yield of_example(example, pair=True)


def _said(record: Pairwise, order: str) -> str:
    """What the judge answered, as a pairwise judge here would have; what could not be read, to the letter."""
    given = order == "given"
    side, raw = (record.given, record.raw_given) if given else (record.swapped, record.raw_swapped)
    if side is None:
        return raw or NOTHING
    reasons = [record.reason] if given and record.reason else []
    return json.dumps({"reasons": reasons, "verdict": WORDS[side]}, ensure_ascii=False)


def _add(membership: Membership, endpoint: Endpoint, outputs: dict[str, str]) -> None:
    remaining = iter(outputs.items())
    while chunk := list(islice(remaining, LINES)):
        lines = "".join(json.dumps({"key": key, "text": text}) + "\n" for key, text in chunk)
        add_recorded(membership, endpoint, io.BytesIO(lines.encode()))
