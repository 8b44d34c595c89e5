"""The data card: the content of a version, the agreement of its raters, its sources, and its permitted use."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from trainer.contracts.plurals import with_noun

from ..columns import packed
from ..models import DatasetVersion
from ..versions import lineage

LONGEST_LINE = 100  # versions of the line of descent


def build(version: DatasetVersion) -> dict[str, Any]:
    """The card as a JSON object. An unknown value is null."""
    dataset = version.dataset
    return {
        "name": dataset.name,
        "description": dataset.description,
        "licence": dataset.licence or None,
        "version": version.number,
        "state": version.state,
        "digest": version.digest,
        "tags": sorted(version.tags.values_list("name", flat=True)),
        "created_at": version.created_at.isoformat(timespec="seconds"),
        "counts": version.counts,
        "domains": version.facets.get("domain", {}),
        "sources": version.facets.get("source", {}),
        "agreement": agreement(version),
        "labels": labels(version),
        "lineage": line(version),
    }


def agreement(version: DatasetVersion) -> dict[str, Any]:
    """The mean share of rater pairs on the same side, over the examples that two or more people judged."""
    values = packed.columns(version)["agreement"]
    known = values[~np.isnan(values)]
    if not len(known):
        return {"undefined": "no pair of responses was judged by two or more people", "examples": 0}
    return {"pairwise": round(float(known.mean(dtype=np.float64)), 4), "examples": len(known)}


def labels(version: DatasetVersion) -> dict[str, int]:
    """Judged pairs by the better side, as the responses stand in their example."""
    strength = packed.columns(version)["strength"]
    return {
        "first": int((strength < 0).sum()),
        "second": int((strength > 0).sum()),
        "tie": int((strength == 0).sum()),
    }


def line(version: DatasetVersion) -> list[dict[str, Any]]:
    """The versions from which this version descends; it is the first itself."""
    held = {each.number: each for each in version.dataset.versions.only("number", "digest", "lineage", "created_at")}
    steps: list[dict[str, Any]] = []
    number = version.number
    while number in held and len(steps) < LONGEST_LINE:
        each = held.pop(number)  # taken out, so that a line which leads back to itself ends
        origin, detail, _ = lineage.describe(each.lineage)
        steps.append(
            {
                "version": number,
                "digest": each.digest,
                "made": each.created_at.isoformat(timespec="seconds"),
                "origin": origin,
                "detail": [words for words in detail if words],
                "lineage": each.lineage,
            }
        )
        number = each.lineage.get("base")
    return steps


def markdown(told: dict[str, Any], files: Mapping[str, str] | None = None) -> str:
    """The card as a README with the front matter that dataset hubs read. `files`: split -> its file."""
    counts = told["counts"]
    parts = [
        _front_matter(told, files or {}),
        f"# {told['name']}, version {told['version']}",
        told["description"] or "No description.",
        f"Licence: {told['licence'] or 'not stated'}. Digest: `{told['digest']}`. State: {told['state']}.",
        "## Contents\n\n"
        + _table(("what", "how many"), [(name.replace("_", " "), f"{n:,}") for name, n in counts.items()]),
    ]
    for name in ("domains", "sources"):
        if told[name]:
            rows = [(value, f"{n:,}") for value, n in told[name].items()]
            parts.append(f"## {name.capitalize()}\n\n" + _table((name[:-1], "examples"), rows))
    parts.append("## Agreement\n\n" + agreement_words(told))
    steps = (
        f"- Version {step['version']} ({step['made'][:10]}): {'. '.join([step['origin'], *step['detail']])}"
        for step in told["lineage"]
    )
    parts.append("## Where it comes from\n\n" + "\n".join(steps))
    return "\n\n".join(parts) + "\n"


def _front_matter(told: dict[str, Any], files: Mapping[str, str]) -> str:
    lines = [
        f"pretty_name: {json.dumps(told['name'], ensure_ascii=False)}",
        f"license: {json.dumps(told['licence'] or 'unknown')}",
    ]
    if files:
        lines += ["configs:", "- config_name: default", "  data_files:"]
        for split, path in files.items():
            lines += [f"  - split: {split}", f"    path: {path}"]
    return "\n".join(("---", *lines, "---"))


def agreement_words(told: dict[str, Any]) -> str:
    """The agreement of raters in a card as `build` makes it, and the sides that the judged pairs take, in words."""
    found, sides = told["agreement"], told["labels"]
    pairs = f"Of the judged pairs, {sides['first']:,} prefer the first response, {sides['second']:,} the second, {sides['tie']:,} neither."
    if "undefined" in found:
        return f"Undefined: {found['undefined']}. {pairs}"
    return f"Two raters of one pair take the same side in {found['pairwise']:.1%} of cases ({with_noun(found['examples'], 'examples')}). {pairs}"


def _table(head: tuple[str, str], rows: list[tuple[str, str]]) -> str:
    lines = [f"| {head[0]} | {head[1]} |", "| --- | ---: |"]
    lines += [f"| {_cell(name)} | {count} |" for name, count in rows]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
