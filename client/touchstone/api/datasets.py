"""The group `datasets` of the API. Made by `python -m scripts.client` from the OpenAPI document of the server: do not edit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

from ..calling import Group, quote_part
from .shared import LeakOut, NearOut


class BarOut(TypedDict):
    range: str
    count: int
    all: int


class ChangeOut(TypedDict):
    """A field that only one side has is null on the other, and `only` names the side."""

    path: str
    before: Any
    after: Any
    only: Literal["before", "after"] | None


class CountOut(TypedDict):
    count: int


class CurateIn(TypedDict):
    kind: Literal[
        "duplicates", "leaks", "criteria", "structure", "shortest", "balance", "hardest", "cover", "meaning", "faulty"
    ]
    params: NotRequired[dict[str, Any]]


class CurationOut(TypedDict):
    id: int
    kind: str
    state: str
    params: dict[str, Any]
    done: int
    total: int
    result: dict[str, Any]
    error: str
    version: dict[str, Any] | None
    created_at: str
    finished_at: str | None


class DatasetArchiveIn(TypedDict):
    archived: bool


class DatasetNameIn(TypedDict):
    name: str


class DatasetOut(TypedDict):
    id: int
    name: str
    description: str
    licence: str
    heldout_share: float | None
    group_by: str
    archived_at: str | None
    deleting_at: str | None
    delete_problem: str
    created_at: str
    latest: VersionOut | None


class DependentList(TypedDict):
    items: list[DependentOut]
    next: str | None


class DependentOut(TypedDict):
    """`names` are those of the first few."""

    kind: str
    count: int
    names: list[str]


class DeriveIn(TypedDict):
    filters: NotRequired[dict[str, Any]]
    keep: NotRequired[bool]
    job: NotRequired[int | None]
    note: NotRequired[str]


class DescribeIn(TypedDict):
    description: str
    licence: NotRequired[str]


class DomainOut(TypedDict):
    domain: str
    parts: list[PartOut]


class EntryOut(TypedDict):
    """`before` and `after` are ids of examples; None if the key is only in one of the versions."""

    key: str
    excerpt: str
    before: int | None
    after: int | None
    changes: list[ChangeOut]


class ExampleOut(TypedDict):
    id: int
    dataset_id: int
    digest: str
    content: dict[str, Any]
    versions: list[int]


class ExampleRow(TypedDict):
    id: int
    position: int
    key: str
    excerpt: str
    split: str | None
    domain: str
    source: str
    criteria: int
    responses: int
    preferences: int
    length: int | None
    length_ratio: float | None
    strength: float | None
    undecided: list[str]
    agreement: float | None
    verifiers: list[str]


class FindingOut(TypedDict):
    id: int
    position: int
    group: int
    removes: bool
    detail: dict[str, Any]


class FormatList(TypedDict):
    items: list[FormatOut]
    next: str | None


class FormatOut(TypedDict):
    name: str
    label: str
    help: str
    mappable: bool


class HistogramOut(TypedDict):
    name: str
    label: str
    bars: list[BarOut]
    missing: int


class HistogramsOut(TypedDict):
    items: list[HistogramOut]


class ImportOut(TypedDict):
    id: int
    state: Literal["queued", "running", "finished", "failed", "cancelled"]
    cancel_asked: bool
    dataset: str
    file: str
    format: str
    keep_good: bool
    origin: dict[str, Any]
    bytes_done: int
    bytes_total: int
    rows_done: int
    counts: dict[str, int]
    overlaps: dict[str, Any]
    unsaid: dict[str, int]
    rejected_count: int
    rejected: list[dict[str, Any]]
    unchanged: bool
    error: str
    version: dict[str, Any] | None
    created_at: str
    finished_at: str | None


class LayoutList(TypedDict):
    items: list[LayoutOut]
    next: str | None


class LayoutOut(TypedDict):
    """`leaves_out`: parts of this version for which the layout has no place. `says_otherwise`: parts that the
    file has in another form, which its readers understand otherwise. `reads_back`: an import of the file
    gives the identical version, as far as its examples are in the file (`needs`).
    """

    name: str
    label: str
    help: str
    files: list[str]
    needs: str
    reads_back: bool
    leaves_out: list[str]
    says_otherwise: list[str]


class LeakList(TypedDict):
    """`near`: prompts that are nearly the same. `searched`: by version id, the result of the newest search for
    leaks, including prompts that are nearly the same; a version that was not searched is absent.
    """

    items: list[LeakOut]
    near: list[NearOut]
    searched: dict[str, dict[str, Any]]
    next: str | None


class MapOut(TypedDict):
    known: int
    parts: list[PartOut]
    bars: list[PartOut]
    domains: list[DomainOut]


class PartOut(TypedDict):
    """A group of examples; `filters` narrow the list of examples to them."""

    name: str
    count: int
    filters: dict[str, str]


class PreviewOut(TypedDict):
    kept: int
    removed: int
    leaked: int
    exact: bool
    examples: list[dict[str, Any]]


class ProbeOut(TypedDict):
    """`version` is the one with the examples that the probe asked about. `threshold`: the clipped score from
    which an answer passes.
    """

    id: int
    model: str
    evaluation: int
    version: int
    samples: int
    threshold: float
    made_at: str


class RateOut(TypedDict):
    """`low` and `high` are the 95% interval (Wilson); null, with `rate`, if no answer has a score."""

    position: int
    id: int
    key: str
    passed: int
    tried: int
    rate: float | None
    low: float | None
    high: float | None


class VersionOut(TypedDict):
    id: int
    number: int
    state: str
    digest: str
    counts: dict[str, int]
    facets: dict[str, dict[str, int]]
    lineage: dict[str, Any]
    created_at: str
    frozen_at: str | None


class ViewIn(TypedDict):
    name: str
    filters: NotRequired[dict[str, Any]]


class ViewList(TypedDict):
    items: list[ViewOut]
    next: str | None


class ViewOut(TypedDict):
    id: int
    name: str
    filters: dict[str, Any]


class WrittenIn(TypedDict):
    probes: list[int]


class Datasets(Group):
    def all(self, *, page_size: int | None = None, archived: bool | None = None) -> Iterator[DatasetOut]:
        """The datasets of this workspace, newest first. `archived` lists the archived datasets, and only those."""
        return self._pages(DatasetOut, "/datasets", query={"limit": page_size, "archived": archived})

    def formats(self) -> FormatList:
        """The formats that can be imported."""
        return self._json(FormatList, "GET", "/datasets/formats")

    def start_import(
        self,
        file: Path,
        *,
        name: str,
        format: str | None = None,
        mapping: str | None = None,
        keep_good: bool | None = None,
        heldout_share: float | None = None,
        group_by: str | None = None,
    ) -> ImportOut:
        """Import a file as a new version of a dataset. Responds at once; follow `GET imports/{id}`. A malformed
        line refuses the whole file unless `keep_good`.
        """
        return self._sent(
            ImportOut,
            "/datasets/import",
            file,
            {
                "name": name,
                "format": format,
                "mapping": mapping,
                "keep_good": keep_good,
                "heldout_share": heldout_share,
                "group_by": group_by,
            },
            again=True,
        )

    def show_preview(
        self,
        file: Path,
        *,
        format: str | None = None,
        mapping: str | None = None,
        name: str | None = None,
        heldout_share: float | None = None,
        group_by: str | None = None,
    ) -> dict[str, Any]:
        """Show the first rows of a file as an import would read them; nothing is written."""
        return self._sent(
            dict[str, Any],
            "/datasets/preview",
            file,
            {"format": format, "mapping": mapping, "name": name, "heldout_share": heldout_share, "group_by": group_by},
            again=True,
        )

    def list_imports(self, *, page_size: int | None = None) -> Iterator[ImportOut]:
        """Imports, newest first, without their refused lines."""
        return self._pages(ImportOut, "/imports", query={"limit": page_size})

    def get_import(self, job_id: int) -> ImportOut:
        """An import, with the first 1,000 refused lines."""
        return self._json(ImportOut, "GET", f"/imports/{job_id}")

    def cancel_import(self, job_id: int) -> ImportOut:
        """Cancel an import; none of its rows stay. A running import ends a moment later: follow `GET
        imports/{id}`. 409 if it is finished or failed.
        """
        return self._json(ImportOut, "POST", f"/imports/{job_id}/cancel", again=True)

    def get(self, dataset_id: int) -> DatasetOut:
        """A dataset with its newest version."""
        return self._json(DatasetOut, "GET", f"/datasets/{dataset_id}")

    def describe(self, dataset_id: int, body: DescribeIn) -> DatasetOut:
        """Describe a dataset."""
        return self._json(DatasetOut, "PATCH", f"/datasets/{dataset_id}", body=body)

    def delete(self, dataset_id: int) -> DatasetOut:
        """Delete a dataset with all its versions. 409 while something depends on it, which the message names.
        202: the dataset is large, and a worker deletes it; afterwards it is a 404, or `delete_problem` says
        why it still exists.
        """
        return self._json(DatasetOut, "DELETE", f"/datasets/{dataset_id}")

    def rename(self, dataset_id: int, body: DatasetNameIn) -> DatasetOut:
        """Rename a dataset. 409 while an import or a check of it is under way."""
        return self._json(DatasetOut, "POST", f"/datasets/{dataset_id}/rename", body=body)

    def archive(self, dataset_id: int, body: DatasetArchiveIn) -> DatasetOut:
        """Archive a dataset. Rows that depend on the dataset keep working; nothing is imported into it until it
        is restored.
        """
        return self._json(DatasetOut, "POST", f"/datasets/{dataset_id}/archive", body=body, again=True)

    def dependents(self, dataset_id: int) -> DependentList:
        """Rows that depend on a dataset, so that it cannot be deleted."""
        return self._json(DependentList, "GET", f"/datasets/{dataset_id}/dependents")

    def list_versions(self, dataset_id: int, *, page_size: int | None = None) -> Iterator[VersionOut]:
        """Versions, newest first."""
        return self._pages(VersionOut, f"/datasets/{dataset_id}/versions", query={"limit": page_size})

    def get_version(self, dataset_id: int, number: int) -> VersionOut:
        """One version."""
        return self._json(VersionOut, "GET", f"/datasets/{dataset_id}/versions/{number}")

    def freeze(self, dataset_id: int, number: int) -> VersionOut:
        """Freeze a version."""
        return self._json(VersionOut, "POST", f"/datasets/{dataset_id}/versions/{number}/freeze")

    def get_example(self, example_id: int) -> ExampleOut:
        """One example with everything that is known about it."""
        return self._json(ExampleOut, "GET", f"/examples/{example_id}")

    def diff(
        self,
        dataset_id: int,
        number: int,
        *,
        base: int,
        kind: Literal["added", "removed", "changed"] | None = None,
        page_size: int | None = None,
    ) -> Iterator[EntryOut]:
        """Examples that were added, removed and changed since another version."""
        return self._pages(
            EntryOut,
            f"/datasets/{dataset_id}/versions/{number}/diff",
            query={"base": base, "kind": kind, "limit": page_size},
        )

    def show_leaks(self, dataset_id: int, number: int, *, along: list[int] | None = None) -> LeakList:
        """Prompts in train that are held out as well. Within this version, and between it and the versions whose
        ids are in `along` (give it once for each).
        """
        return self._json(LeakList, "GET", f"/datasets/{dataset_id}/versions/{number}/leaks", query={"along": along})

    def tag(self, dataset_id: int, number: int, name: str) -> dict[str, Any]:
        """Tag this version; a tag on another version moves here."""
        return self._json(dict[str, Any], "PUT", f"/datasets/{dataset_id}/versions/{number}/tags/{quote_part(name)}")

    def untag(self, dataset_id: int, number: int, name: str) -> None:
        """Remove a tag."""
        self._nothing("DELETE", f"/datasets/{dataset_id}/versions/{number}/tags/{quote_part(name)}")

    def preview(self, dataset_id: int, number: int, body: DeriveIn) -> PreviewOut:
        """Examples that a derivation would remove; nothing is written."""
        return self._json(
            PreviewOut, "POST", f"/datasets/{dataset_id}/versions/{number}/derive/preview", body=body, again=True
        )

    def derive(self, dataset_id: int, number: int, body: DeriveIn) -> CurationOut:
        """Create a version without the examples that are filtered out. Responds at once; follow `GET
        curations/{id}` until it has a `version`.
        """
        return self._json(CurationOut, "POST", f"/datasets/{dataset_id}/versions/{number}/derive", body=body)

    def curate(self, dataset_id: int, number: int, body: CurateIn) -> CurationOut:
        """Look for duplicates, leaks, idle criteria, bad rubrics, or for examples to train on. Nothing is
        changed: `derive` with the id of this job can remove what it finds.
        """
        return self._json(CurationOut, "POST", f"/datasets/{dataset_id}/versions/{number}/curate", body=body)

    def curation(self, job_id: int) -> CurationOut:
        """A curation job: its progress and what it found."""
        return self._json(CurationOut, "GET", f"/curations/{job_id}")

    def findings(self, job_id: int, *, page_size: int | None = None) -> Iterator[FindingOut]:
        """Findings of a curation job, one by one."""
        return self._pages(FindingOut, f"/curations/{job_id}/findings", query={"limit": page_size})

    def list_examples(
        self,
        dataset_id: int,
        number: int,
        *,
        q: str | None = None,
        split: str | None = None,
        domain: str | None = None,
        source: str | None = None,
        verifier: str | None = None,
        rubric: bool | None = None,
        preferences: bool | None = None,
        label: str | None = None,
        kind: str | None = None,
        slice: str | None = None,
        hard: str | None = None,
        prompt_length: str | None = None,
        length: str | None = None,
        ratio: str | None = None,
        criteria: str | None = None,
        strength: str | None = None,
        agreement: str | None = None,
        pass_rate: str | None = None,
        reach: str | None = None,
        probe: int | None = None,
        constraints: str | None = None,
        page_size: int | None = None,
    ) -> Iterator[ExampleRow]:
        """The examples of a version, narrowed and in order."""
        return self._pages(
            ExampleRow,
            f"/datasets/{dataset_id}/versions/{number}/examples",
            query={
                "q": q,
                "split": split,
                "domain": domain,
                "source": source,
                "verifier": verifier,
                "rubric": rubric,
                "preferences": preferences,
                "label": label,
                "kind": kind,
                "slice": slice,
                "hard": hard,
                "prompt_length": prompt_length,
                "length": length,
                "ratio": ratio,
                "criteria": criteria,
                "strength": strength,
                "agreement": agreement,
                "pass_rate": pass_rate,
                "reach": reach,
                "probe": probe,
                "constraints": constraints,
                "limit": page_size,
            },
        )

    def count(
        self,
        dataset_id: int,
        number: int,
        *,
        q: str | None = None,
        split: str | None = None,
        domain: str | None = None,
        source: str | None = None,
        verifier: str | None = None,
        rubric: bool | None = None,
        preferences: bool | None = None,
        label: str | None = None,
        kind: str | None = None,
        slice: str | None = None,
        hard: str | None = None,
        prompt_length: str | None = None,
        length: str | None = None,
        ratio: str | None = None,
        criteria: str | None = None,
        strength: str | None = None,
        agreement: str | None = None,
        pass_rate: str | None = None,
        reach: str | None = None,
        probe: int | None = None,
        constraints: str | None = None,
    ) -> CountOut:
        """The number of examples that pass the filters."""
        return self._json(
            CountOut,
            "GET",
            f"/datasets/{dataset_id}/versions/{number}/count",
            query={
                "q": q,
                "split": split,
                "domain": domain,
                "source": source,
                "verifier": verifier,
                "rubric": rubric,
                "preferences": preferences,
                "label": label,
                "kind": kind,
                "slice": slice,
                "hard": hard,
                "prompt_length": prompt_length,
                "length": length,
                "ratio": ratio,
                "criteria": criteria,
                "strength": strength,
                "agreement": agreement,
                "pass_rate": pass_rate,
                "reach": reach,
                "probe": probe,
                "constraints": constraints,
            },
        )

    def histograms(
        self,
        dataset_id: int,
        number: int,
        *,
        q: str | None = None,
        split: str | None = None,
        domain: str | None = None,
        source: str | None = None,
        verifier: str | None = None,
        rubric: bool | None = None,
        preferences: bool | None = None,
        label: str | None = None,
        kind: str | None = None,
        slice: str | None = None,
        hard: str | None = None,
        prompt_length: str | None = None,
        length: str | None = None,
        ratio: str | None = None,
        criteria: str | None = None,
        strength: str | None = None,
        agreement: str | None = None,
        pass_rate: str | None = None,
        reach: str | None = None,
        probe: int | None = None,
        constraints: str | None = None,
    ) -> HistogramsOut:
        """Histograms of lengths, ratios, criteria and so on. Each column is narrowed by all filters except its
        own. A bar's `range` is the filter that selects it.
        """
        return self._json(
            HistogramsOut,
            "GET",
            f"/datasets/{dataset_id}/versions/{number}/histograms",
            query={
                "q": q,
                "split": split,
                "domain": domain,
                "source": source,
                "verifier": verifier,
                "rubric": rubric,
                "preferences": preferences,
                "label": label,
                "kind": kind,
                "slice": slice,
                "hard": hard,
                "prompt_length": prompt_length,
                "length": length,
                "ratio": ratio,
                "criteria": criteria,
                "strength": strength,
                "agreement": agreement,
                "pass_rate": pass_rate,
                "reach": reach,
                "probe": probe,
                "constraints": constraints,
            },
        )

    def list_views(self, dataset_id: int) -> ViewList:
        """Filters saved under a name."""
        return self._json(ViewList, "GET", f"/datasets/{dataset_id}/views")

    def save_view(self, dataset_id: int, body: ViewIn) -> ViewOut:
        """Save filters under a name. A view of the same name is replaced."""
        return self._json(ViewOut, "POST", f"/datasets/{dataset_id}/views", body=body)

    def delete_view(self, view_id: int) -> None:
        """Delete a saved view."""
        self._nothing("DELETE", f"/views/{view_id}")

    def list_probes(self, dataset_id: int, *, page_size: int | None = None) -> Iterator[ProbeOut]:
        """Measurements of pass rates, newest first."""
        return self._pages(ProbeOut, f"/datasets/{dataset_id}/probes", query={"limit": page_size})

    def read_map(self, dataset_id: int, number: int, probe_id: int) -> MapOut:
        """Prompts that are solved, learnable, or out of reach."""
        return self._json(MapOut, "GET", f"/datasets/{dataset_id}/versions/{number}/probes/{probe_id}")

    def list_rates(
        self, dataset_id: int, number: int, probe_id: int, *, page_size: int | None = None
    ) -> Iterator[RateOut]:
        """The pass rate of each example. The rates in the version's order. Filters of examples take `probe`,
        too: `reach=learnable&probe=…`.
        """
        return self._pages(
            RateOut, f"/datasets/{dataset_id}/versions/{number}/probes/{probe_id}/rates", query={"limit": page_size}
        )

    def write_rates(self, dataset_id: int, number: int, body: WrittenIn) -> VersionOut:
        """Create a version whose examples have these pass rates as `meta.pass_rate`. Runs read the rates there:
        hints, stages by pass rate, orders from easy to hard.
        """
        return self._json(VersionOut, "POST", f"/datasets/{dataset_id}/versions/{number}/probes/write", body=body)

    def delete_probe(self, probe_id: int) -> None:
        """Delete the pass rates of a probe."""
        self._nothing("DELETE", f"/probes/{probe_id}")

    def layouts(self, dataset_id: int, number: int) -> LayoutList:
        """The layouts of an export, and what each would leave out."""
        return self._json(LayoutList, "GET", f"/datasets/{dataset_id}/versions/{number}/export/formats")

    def export(
        self,
        dataset_id: int,
        number: int,
        to: Path,
        *,
        format: str | None = None,
        file: Literal["jsonl", "parquet"] | None = None,
        split: Literal["", "train", "heldout", "unsplit"] | None = None,
        extras: bool | None = None,
        archive: bool | None = None,
        imported: bool | None = None,
    ) -> Path:
        """The examples of a version as a file, streamed. `format` is one of `export/formats`. With `extras`,
        layouts that we can import have a column `touchstone` with the rest, so that importing the file gives
        the identical digest. `archive` makes a zip with the data card, Croissant metadata (croissant.json)
        and one file for each split, which the datasets library loads as splits; without it and without
        `split`, all examples are in one file, each with its side in the column `split`. `imported=false`
        leaves out preferences, rubrics and references that came with an import: labels by people of projects
        remain, and a layout that needs a label has no row for an example without one. The column
        `labelled_by` gives the origin of each label. 422 if the version has nothing for the layout.
        """
        return self._file(
            to,
            f"/datasets/{dataset_id}/versions/{number}/export",
            query={
                "format": format,
                "file": file,
                "split": split,
                "extras": extras,
                "archive": archive,
                "imported": imported,
            },
        )

    def show_card(
        self, dataset_id: int, number: int, *, format: Literal["json", "markdown"] | None = None
    ) -> dict[str, Any]:
        """The data card: counts, agreement, licence, lineage."""
        return self._json(
            dict[str, Any], "GET", f"/datasets/{dataset_id}/versions/{number}/card", query={"format": format}
        )
