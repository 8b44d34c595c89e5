"""Rows for environments: the library verifiers can use them, and a rubric keeps the order of responses."""

import itertools
import json
import os
import subprocess
import sys

import pytest

from tests import client_packages
from trainer.contracts import Example, Verdict
from trainer.rubrics.score import training_score
from webapp.datasets.exports import stream
from webapp.datasets.formats.exporters import REGISTRY
from webapp.datasets.formats.importers import REGISTRY as IMPORTERS
from webapp.datasets.models import Dataset
from webapp.datasets.versions import services
from webapp.files.records import BadRow

from .test_stream import file_of, full

READS = """
import itertools, json, pathlib
from verifiers.v1.judges.rubric import CriterionVerdict, load_criteria, score_verdicts
from verifiers.v1.task import WireTaskData
from verifiers.v1.tasksets.nemo_gym import NeMoGymConfig, NeMoGymTaskset

told = {"tasks": [], "rewards": []}
for line in open("verifiers.jsonl"):
    task = WireTaskData.model_validate_json(line)
    told["tasks"].append([task.id, [m.role for m in task.prompt], task.prompt_text, task.answer])
    path = pathlib.Path("rubric.json")
    path.write_text(task.info)
    criteria = load_criteria(path)
    for answers in itertools.product(("no", "yes"), repeat=len(criteria)):
        given = [CriterionVerdict(name=c.name, reason="", verdict=answer) for c, answer in zip(criteria, answers)]
        scored = score_verdicts(given, criteria, "all")
        total = sum(c.weight for c in criteria)
        told["rewards"].append(sum(c.weight * scored[c.name] for c in criteria) / total)
gym = NeMoGymTaskset(NeMoGymConfig(id="nemo_gym", dataset="nemo_gym.jsonl"))
told["gym"] = [[[m.role for m in task.data.prompt], task.data.row["uuid"]] for task in gym]
print(json.dumps(told))
"""
CRITERIA = [
    {"id": "c1", "text": "Names Rayleigh", "points": 5, "importance": "essential"},
    {"id": "c2", "text": "Apologises", "points": -4, "importance": "pitfall", "tags": ["tone"]},
    {
        "id": "c3",
        "text": "Under 40 words",
        "points": 2,
        "kind": "hard",
        "verifier": {"name": "word_count", "args": {"max": 40}},
    },
]


def example_version(team, **extra):
    dataset = Dataset.objects.create(workspace=team.workspace, name="Sky")
    records = [Example.model_validate(full(f"e{i}", rubric={"criteria": CRITERIA}, **extra)) for i in range(2)]
    bare = Example.model_validate({"key": "bare", "prompt": [{"role": "user", "content": "?"}]})
    return services.new_version(team.researcher, dataset, [*records, bare], None, {"from": "run"})


def rows(version, format, **options):
    return [json.loads(line) for line in file_of(version, format, **options).splitlines()]


@pytest.mark.slow
def test_the_library_itself_reads_tasks_rubrics_and_the_rows_of_nemo_gym(team, tmp_path):
    version = example_version(team)
    lines = file_of(version, "verifiers").splitlines()[:2]
    (tmp_path / "verifiers.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    (tmp_path / "nemo_gym.jsonl").write_bytes(file_of(version, "nemo_gym"))
    environment = os.environ | {"PYTHONPATH": str(client_packages.folder(client_packages.VERIFIERS))}
    done = subprocess.run(
        [sys.executable, "-c", READS], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout)
    assert told["tasks"][0][:2] == ["e0", ["system", "user"]] and told["tasks"][0][3] == "Rayleigh scattering."
    assert told["gym"] == [[["system", "user"], "e0"], [["system", "user"], "e1"]]
    rubric = Example.model_validate(full(rubric={"criteria": CRITERIA})).rubric
    for reward, met in zip(told["rewards"], itertools.product((False, True), repeat=3), strict=False):
        verdicts = [Verdict(criterion_id=each.id, met=yes) for each, yes in zip(rubric.criteria, met, strict=True)]
        assert reward == pytest.approx((training_score(rubric, verdicts).score * 7 + 4) / (7 + 4))


def test_a_criterion_that_costs_points_is_asked_for_the_other_answer(team):
    version = example_version(team)
    [first, second, third] = json.loads(rows(version, "verifiers")[0]["info"])["criteria"]
    assert (first["name"], first["weight"], "choices" in first) == ("c1", 5, False)
    assert (second["weight"], second["choices"], json.loads(third["verifier"])["name"]) == (
        4,
        ["yes", "no"],
        "word_count",
    )
    [row, *others] = rows(version, "nemo_gym")
    assert [(each["pass_criteria"], each["weight"]) for each in row["rubric"]] == [("YES", 5), ("NO", 4), ("YES", 2)]
    assert row["responses_create_params"]["input"][0] == {"role": "system", "content": "Be brief."}
    assert row["context"].startswith("[SYSTEM]: Be brief.\n\n[USER]: ") and len(others) == 1
    assert rows(version, "verifiers")[2]["info"] == "{}" and rows(version, "verifiers")[2]["answer"] is None


def test_what_is_said_otherwise_is_counted(team, api):
    version = example_version(team)
    turned, judged = stream.says_otherwise(REGISTRY["verifiers"], version)
    assert turned.startswith("2 examples with a criterion that costs points") and judged.startswith("2 examples")
    assert stream.says_otherwise(REGISTRY["trl_rl"], version) == []
    assert stream.leaves_out(REGISTRY["nemo_gym"], version) == ["1 example without a rubric"]
    listed = api.get(f"/datasets/{version.dataset_id}/versions/1/export/formats").json()["items"]
    assert {each["name"]: len(each["says_otherwise"]) for each in listed}["nemo_gym"] == 2


@pytest.mark.parametrize("format", ["verifiers", "nemo_gym"])
def test_a_rubric_comes_back_without_the_column_too(team, import_rows, format):
    version = example_version(team)
    job = import_rows(rows(version, format, extras=False)[:2], name="Back")
    assert job.rejected == []
    examples = [each.example.record for each in job.version.members.order_by("position")]
    assert examples[0].rubric == Example.model_validate(full(rubric={"criteria": CRITERIA})).rubric
    assert (examples[0].key, examples[0].reference) == ("e0", "Rayleigh scattering.")


def read(row):
    assert IMPORTERS["environments"].knows(row) > 0.9
    return Example.model_validate(IMPORTERS["environments"].convert(row, {}))


def test_rows_of_others_are_read():
    asked = [{"role": "user", "content": "Hi"}]
    plain = read({"prompt": asked, "answer": "4", "info": {"level": 3}, "task": "sums"})
    assert (plain.reference, plain.rubric, plain.meta) == ("4", None, {"info": {"level": 3}, "task": "sums"})
    question = {"question": "Did it greet?", "pass_criteria": "YES"}
    gym = read(
        {
            "uuid": "u1",
            "responses_create_params": {"input": asked, "temperature": 0.5},
            "rubric": [question, {**question, "pass_criteria": "NO", "weight": 2}],
            "context": "[USER]: Hi",
            "metadata": {"topic": "greetings"},
        }
    )
    assert [(each.id, each.points) for each in gym.rubric.criteria] == [("c1", 1), ("c2", -2)]
    assert gym.meta == {"metadata": {"topic": "greetings"}, "responses_create_params": {"temperature": 0.5}}


@pytest.mark.parametrize(
    ("criterion", "field"),
    [
        ({"name": "a", "text": "Good", "choices": ["bad", "fair", "good"]}, "info.criteria.0.choices"),
        ({"name": "a", "text": "Good", "weight": 0}, "info.criteria.0.weight"),
        ({"name": "a", "text": "Good", "verifier": "{"}, "info.criteria.0.verifier"),
        ("Good", "info.criteria.0"),
    ],
)
def test_a_criterion_that_no_rubric_of_ours_can_say_is_refused_at_its_place(criterion, field):
    row = {"prompt": "Hi", "answer": "", "info": json.dumps({"criteria": [criterion]})}
    with pytest.raises(BadRow) as refused:
        IMPORTERS["environments"].convert(row, {})
    assert refused.value.field == field
