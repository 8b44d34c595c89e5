"""Leaks between train and held out: prompts that are the same, or nearly the same, on both sides.

The same prompts are found by their hashes, nearly the same ones by MinHash (see `duplicates`). Other versions can be included: then an
example is also found if its prompt is on the other side there.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainer.contracts import Example
from webapp.core.problems import Invalid

from .. import queries
from ..columns import packed
from ..index import tokenizer
from ..models import CurationJob, DatasetVersion
from .duplicates import BAND, LARGE_GROUP, WORDS, Signatures, band, equal_positions, signature
from .progress import CurationReport

SIDES = ("train", "heldout")
MOST_VERSIONS = 20


def params(given: dict[str, Any]) -> dict[str, Any]:
    """`remove`: the side from which leaked examples are removed, train (the default) or heldout; `threshold` 0.5 to 1 (0.8); `versions`:
    ids of further versions to compare. Raises Invalid."""
    remove, threshold, versions = given.get("remove", "train"), given.get("threshold", 0.8), given.get("versions", [])
    if remove not in SIDES:
        raise Invalid("The side is not known.", {"params.remove": f"must be one of {', '.join(SIDES)}"})
    if not isinstance(threshold, int | float) or isinstance(threshold, bool) or not 0.5 <= threshold <= 1:
        raise Invalid("The similarity cannot be used.", {"params.threshold": "must be a number from 0.5 to 1"})
    ids = isinstance(versions, list) and all(type(each) is int and 0 < each < 2**63 for each in versions)
    if not ids or len(versions) > MOST_VERSIONS:
        raise Invalid(
            "The versions are not known.", {"params.versions": f"must be a list of at most {MOST_VERSIONS} ids"}
        )
    return {"remove": remove, "threshold": float(threshold), "versions": sorted(set(versions))}


@dataclass
class LeakingPrompt:
    """`losing`: positions in the job's version on the side that loses; `other`: an example on the other side, in any of
    the versions, by the version's place in the list and the example's id."""

    signature: Signatures
    losing: list[int] = field(default_factory=list)
    other: tuple[int, int] | None = None


@dataclass(frozen=True)
class LeakMatch:
    similarity: float
    other: tuple[int, int]


def run(job: CurationJob, report: CurationReport) -> None:
    """One finding for each example of the losing side whose prompt is on the other side. Raises Invalid."""
    versions = [job.version, *_along(job)]
    prompts = _prompts(versions, job.params["remove"], report)
    exact = near = 0
    for prompt, match in matches(prompts, job.params["threshold"]):
        place, example = match.other
        where = versions[place]
        other: dict[str, Any] = {"example": example, "dataset": where.dataset.name, "number": where.number}
        for position in prompt.losing:
            exact += match.similarity == 1.0
            near += match.similarity != 1.0
            report.found(position, **other, similarity=round(match.similarity, 3))
    report.flush()
    total = sum(version.counts.get("examples", 0) for version in versions)
    report.at(total, total)
    job.result = {"exact": exact, "near": near, "examples": total, "along": len(versions) - 1}


def _along(job: CurationJob) -> list[DatasetVersion]:
    wanted = job.params["versions"]
    rows = DatasetVersion.objects.filter(pk__in=wanted, dataset__workspace=job.version.dataset.workspace_id)
    found = list(rows.exclude(pk=job.version_id).select_related("dataset").order_by("pk"))
    if missing := set(wanted) - {each.pk for each in found} - {job.version_id}:
        raise Invalid(f"There is no version with the id {min(missing)}.", {"params.versions": "do not all exist"})
    return found


def _prompts(versions: list[DatasetVersion], remove: str, report: CurationReport) -> list[LeakingPrompt]:
    """Each relevant prompt once. In other versions, only the side that does not lose is relevant."""
    found: dict[int, LeakingPrompt] = {}
    columns = packed.split_columns(version.pk for version in versions)
    total, done = sum(version.counts.get("examples", 0) for version in versions), 0
    for place, version in enumerate(versions):
        held = columns[version.pk]
        loses = ~held.heldout if remove == "train" else held.heldout
        for position, line in queries.stream_canonical(version):
            done += 1
            if done % 500 == 0:
                report.at(done, total)
            if place and loses[position]:
                continue
            prompt = found.get(key := int(held.prompts[position]))
            if prompt is None:
                prompt = found[key] = LeakingPrompt(signature_of(line))
            if loses[position]:
                prompt.losing.append(position)
            elif prompt.other is None:
                prompt.other = (place, int(held.ids[position]))
    return list(found.values())


def signature_of(line: str) -> Signatures:
    """The signature of the prompt of an example, given as its canonical text."""
    prompt = Example.model_validate_json(line).prompt
    return signature(tokenizer.tokens("\n".join(message.content for message in prompt)))


def matches(prompts: list[LeakingPrompt], threshold: float) -> Iterator[tuple[LeakingPrompt, LeakMatch]]:
    """Each prompt of the losing side that is on the other side as well, with the most similar one there."""
    best = {i: LeakMatch(1.0, each.other) for i, each in enumerate(prompts) if each.losing and each.other}
    signatures = np.stack([each.signature for each in prompts]) if prompts else np.zeros((0, WORDS), np.uint32)
    for at in range(0, WORDS, BAND):
        for group in equal_positions(band(signatures, at)):
            _compare(prompts, signatures, group, best)
    for i in sorted(best):
        if best[i].similarity >= threshold:
            yield prompts[i], best[i]


def _compare(
    prompts: list[LeakingPrompt], signatures: Signatures, group: NDArray[np.int64], best: dict[int, LeakMatch]
) -> None:
    others = np.array([i for i in group if prompts[i].other][:LARGE_GROUP], np.int64)
    for i in (int(each) for each in group if len(others) and prompts[each].losing and not prompts[each].other):
        similar = (signatures[others] == signatures[i]).mean(axis=1)
        likest = int(similar.argmax())
        other = prompts[others[likest]].other
        found = LeakMatch(min(float(similar[likest]), 0.999), other) if other else None
        if found and (i not in best or found.similarity > best[i].similarity):
            best[i] = found
