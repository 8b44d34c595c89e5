"""Exact and near duplicates by MinHash (Broder, 1997), in bounded memory.

An example is removed if an earlier one that stays is at least as similar as requested: the Jaccard index of their three-word shingles,
estimated from signatures. Candidates are found by banding (Indyk and Motwani, 1998); the bands are sorted arrays rather
than hash tables of Python objects, so that a million examples need 64 signature words each and little else.
"""

import zlib
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainer.contracts import Example
from webapp.core.problems import Invalid

from .. import queries
from ..index import tokenizer
from ..models import CurationJob
from .progress import CurationReport

WORDS = 64  # of a signature: the estimate's standard error is at most 1/16
BAND = 4  # words that must all agree: at a similarity of 0.7 a pair is found with 98.8 %, at 0.8 with 99.98 %
SHINGLE = 3
SCOPES = ("all", "prompt")
LARGE_GROUP = 200  # examples alike in one band; in a larger group, each is compared only with the first ones
Signatures = NDArray[np.uint32]


def params(given: dict[str, Any]) -> dict[str, Any]:
    """`threshold` 0.5 to 1 (0.8) and `scope`: all (prompt and responses) or prompt. Raises Invalid."""
    threshold, scope = given.get("threshold", 0.8), given.get("scope", "all")
    if not isinstance(threshold, int | float) or isinstance(threshold, bool) or not 0.5 <= threshold <= 1:
        raise Invalid("The similarity cannot be used.", {"params.threshold": "must be a number from 0.5 to 1"})
    if scope not in SCOPES:
        raise Invalid("The scope is not known.", {"params.scope": f"must be one of {', '.join(SCOPES)}"})
    return {"threshold": float(threshold), "scope": scope}


def run(job: CurationJob, report: CurationReport) -> None:
    """Stores one finding for each example to remove; `group` is the position of the one that stays for it."""
    total = job.version.counts.get("examples", 0)
    signatures = np.zeros((total, WORDS), np.uint32)
    contents = np.zeros(total, np.uint64)
    for position, text in _texts(job):
        tokens = tokenizer.tokens(text)
        contents[position] = _content(tokens)
        signatures[position] = signature(tokens)
        if position % 500 == 0:
            report.at(position, total)
    exact = near = 0
    for position, group, similarity in pairs(signatures, contents, job.params["threshold"]):
        exact += similarity == 1.0
        near += similarity != 1.0
        report.found(position, group=group, similarity=round(similarity, 3))
    report.flush()
    report.at(total, total)
    groups = job.findings.values("group").distinct().count()
    job.result = {"exact": exact, "near": near, "groups": groups, "examples": total}


def _texts(job: CurationJob) -> Iterator[tuple[int, str]]:
    for position, line in queries.stream_canonical(job.version):
        example = Example.model_validate_json(line)
        texts = [message.content for message in example.prompt]
        if job.params["scope"] == "all":
            texts += [response.text for response in example.responses]
        yield position, "\n".join(texts)


def _content(tokens: list[str]) -> int:
    """A hash that is equal for texts with the same words, without regard to case, accents and spaces."""
    text = " ".join(tokens).encode()
    return zlib.crc32(text) << 32 | zlib.adler32(text)


def signature(tokens: list[str]) -> Signatures:
    """WORDS minima over the shingles of the tokens; a text shorter than a shingle is one."""
    count = max(1, len(tokens) - SHINGLE + 1)
    shingles = {" ".join(tokens[at : at + SHINGLE]).encode() for at in range(count)}
    made = _empty().copy()
    made.update_batch(shingles)
    found: Signatures = made.hashvalues.astype(np.uint32)
    return found


@cache
def _empty() -> Any:
    """The signature of nothing. To draw its random numbers again would take longer than to sign a text."""
    from datasketch import MinHash  # it imports half of scipy, which only a search for duplicates needs

    return MinHash(num_perm=WORDS, hashfunc=zlib.crc32)


def pairs(signatures: Signatures, contents: NDArray[np.uint64], threshold: float) -> Iterator[tuple[int, int, float]]:
    """(position to remove, position that stays for it, similarity), in order of the first; each is removed once."""
    earlier: dict[int, set[int]] = {}
    for candidates in (
        equal_positions(contents),
        *(equal_positions(band(signatures, at)) for at in range(0, WORDS, BAND)),
    ):
        for group in candidates:
            for place, position in enumerate(group):
                if place:
                    earlier.setdefault(int(position), set()).update(map(int, group[: min(place, LARGE_GROUP)]))
    gone: set[int] = set()
    for position in sorted(earlier):
        stays = np.array(sorted(earlier[position] - gone), np.int64)
        if not len(stays):
            continue
        similar = (signatures[stays] == signatures[position]).mean(axis=1)
        similar[contents[stays] == contents[position]] = 1.0
        best = int(similar.argmax())
        if similar[best] >= threshold:
            gone.add(position)
            same = bool(contents[stays[best]] == contents[position])
            yield position, int(stays[best]), 1.0 if same else min(float(similar[best]), 0.999)


def band(signatures: Signatures, at: int) -> NDArray[np.uint64]:
    """One number for BAND words of each signature; a rare collision only costs a comparison."""
    mixed = np.zeros(len(signatures), np.uint64)
    for word in range(at, at + BAND):
        mixed = mixed * np.uint64(0x9E3779B97F4A7C15) + signatures[:, word].astype(np.uint64)
    return mixed


def equal_positions(values: NDArray[np.uint64]) -> Iterator[NDArray[np.int64]]:
    """The positions of equal values, ascending, for each value that occurs more than once."""
    order = np.argsort(values, kind="stable")
    sorted_values = values[order]
    edges = np.flatnonzero(np.diff(sorted_values)) + 1
    for group in np.split(order, edges) if len(values) else []:
        if len(group) > 1:
            yield group
