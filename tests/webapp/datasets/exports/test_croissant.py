"""Croissant metadata: what MLCommons' own library reads from an exported archive, and what it says about the annotators."""

import hashlib
import io
import json
import os
import subprocess
import sys
import zipfile
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tests import client_packages
from trainer.contracts import Example
from webapp.datasets.exports import annotated, croissant, data_card
from webapp.datasets.exports.annotated import Annotated
from webapp.datasets.formats.exporters import REGISTRY
from webapp.datasets.models import Dataset
from webapp.datasets.versions import services

from .test_stream import file_of, full

READS = """
import json, sys
import mlcroissant

loaded = mlcroissant.Dataset(jsonld="croissant.json")
told = {"annotations": loaded.metadata.annotations_per_item, "collected": loaded.metadata.data_collection}
told["warnings"] = sorted(loaded.metadata.ctx.issues.warnings)
plain = lambda value: value.decode() if isinstance(value, bytes) else str(value)
for records in loaded.metadata.record_sets:
    told[records.id] = list(loaded.records(records.id))
print(json.dumps(told, default=plain))
"""
BY = Annotated("Sky", "Pairs", (1, 3), 4, 20, 45, 2, 3, 5, ("Helper v2",), date(2026, 3, 1), date(2026, 4, 2))


@pytest.fixture
def version(team):
    dataset = Dataset.objects.create(workspace=team.workspace, name="Sky", licence="CC-BY-4.0")
    records = [Example.model_validate(full(f"e{i}", split=["train", "heldout"][i % 2])) for i in range(4)]
    return services.new_version(team.researcher, dataset, records, None, {"from": "run", "run": 7})


def unpacked(version, folder: Path, format: str, kind: str) -> dict:
    zipfile.ZipFile(io.BytesIO(file_of(version, format, kind, archive=True))).extractall(folder)
    return json.loads((folder / "croissant.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_its_own_library_reads_every_row_of_each_split(version, tmp_path, kind):
    unpacked(version, tmp_path, "trl_preference", kind)
    environment = os.environ | {"PYTHONPATH": str(client_packages.folder(client_packages.CROISSANT))}
    done = subprocess.run(
        [sys.executable, "-c", READS], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout)
    assert [row["train/key"] for row in told["train"]] == ["e0", "e0", "e2", "e2"] and len(told["heldout"]) == 4
    assert told["train"][0]["train/chosen"][-1]["train/chosen/content"] == "لأن الهواء يبعثر الأزرق"
    assert told["train"][0]["train/strength"] == 2.0  # two raters, 3 and 1
    assert told["annotations"] is None and "Produced by run 7" in told["collected"]
    assert all("recommended" in warning for warning in told["warnings"])


def test_each_file_has_its_digest_and_its_size(version, tmp_path):
    told = unpacked(version, tmp_path, "verl", "parquet")
    assert [file["contentUrl"] for file in told["distribution"]] == ["data/train.parquet", "data/heldout.parquet"]
    for file in told["distribution"]:
        content = (tmp_path / file["contentUrl"]).read_bytes()
        assert file["sha256"] == hashlib.sha256(content).hexdigest()
        assert file["contentSize"] == f"{len(content)} B"


@pytest.mark.parametrize("format", REGISTRY)
def test_every_layout_describes_its_files(version, tmp_path, format):
    told = unpacked(version, tmp_path, format, "jsonl")
    fields = [field["name"] for records in told["recordSet"] for field in records["field"]]
    assert len(told["distribution"]) == 2
    assert bool(fields) is (REGISTRY[format].schema is not None and format != "touchstone")


def test_what_nobody_knows_is_left_out(version):
    told = data_card.build(version) | {"licence": None}
    found = croissant.build(told, [], "jsonl", None, [])
    assert "license" not in found
    assert [name for name in found if name.startswith("rai:")] == ["rai:dataCollection", "rai:dataAnnotationAnalysis"]


def test_who_annotated_and_how_is_said_without_names(version):
    found = croissant.responsible(data_card.build(version), [BY])
    assert found["rai:dataAnnotationProtocol"] == (
        "Sky: Pairs, by versions 1, 3 of its guidelines; 45 answers to 20 tasks. Before 5 of them a model's view was shown."
    )
    assert found["rai:annotationsPerItem"] == "Sky: 2.25 answers to a task that has any (2 to 3)."
    assert found["rai:annotatorDemographics"] == "Sky: 4 people; nothing else about them is asked."
    assert found["rai:machineAnnotationTools"] == ["Helper v2"]
    assert found["rai:dataCollectionTimeframe"] == ["2026-03-01", "2026-04-02"]
    assert "same side in 100.0% of cases (4 examples)" in found["rai:dataAnnotationAnalysis"]


def test_only_projects_of_the_line_are_asked_for_and_each_once(version, monkeypatch):
    asked = []
    monkeypatch.setattr(annotated, "ANNOTATED", [lambda version, ids: asked.append(ids) or []])
    steps: list[dict[str, Any]] = [
        {"lineage": each} for each in ({"from": "annotation", "project": 3}, {"from": "import"})
    ]
    annotated.annotated_projects(
        version, [*steps, {"lineage": {"from": "annotation", "project": 3}}, {"lineage": {"from": "annotation"}}]
    )
    assert asked == [[3]]
