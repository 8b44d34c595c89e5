"""The models and judges that a config names are rows of its run."""

import json
from dataclasses import replace

import pytest
from django.db import IntegrityError, transaction

from trainer.config import RECIPES, ConfigInvalid
from trainer.config.recipe import Slot
from trainer.judges.spec import resolve as resolve_spec
from webapp.core.encryption import seal
from webapp.core.problems import Conflict
from webapp.experiments.models import Run, RunSlot
from webapp.experiments.rewards import grants
from webapp.inference.endpoints import services as endpoints
from webapp.inference.folders.tokenizers import speaks_otherwise
from webapp.inference.models import Endpoint, RegisteredModel
from webapp.inference.registry import services as registry
from webapp.judging.judges.services import create_judge
from webapp.judging.models import Judge, JudgeVersion

from ..conftest import Trainer

DISTILL = {"steps": 2, "scaffold": None, "objective": {"name": "distill", "teacher": "big"}}


@pytest.fixture
def teacher(team) -> RegisteredModel:
    return RegisteredModel.objects.create(workspace=team.workspace, name="big", source="local", path="/models/big")


@pytest.fixture
def judge(team) -> JudgeVersion:
    endpoint = Endpoint.objects.create(workspace=team.workspace, name="here", kind="chat", url="https://x", model="m")
    row = Judge.objects.create(workspace=team.workspace, name="Grader v1 of us", kind="criterion")
    return JudgeVersion.objects.create(judge=row, number=2, spec={}, endpoint=endpoint, digest="e" * 64)


@pytest.fixture
def names_a_judge(monkeypatch):
    """A recipe that names a judge in the field in which the policy has its teacher."""
    slots = (Slot("base", "model.name"), Slot("grader", "objective.teacher", "judge", when=("name", ("distill",))))
    monkeypatch.setitem(RECIPES, "policy", replace(RECIPES["policy"], slots=slots))


def test_every_model_that_the_config_names_is_a_row_of_the_run(launch, model, teacher):
    run = launch(config=DISTILL)
    found = list(run.slots.order_by("id").values_list("role", "path", "model"))
    assert found == [("base", "model.name", model.id), ("teacher", "objective.teacher", teacher.id)]
    told = Trainer(run).client.get(f"/api/v1/ingest/runs/{run.id}").json()
    assert {role: each["path"] for role, each in told["models"].items()} == {
        "base": model.path,
        "teacher": "/models/big",
    }
    assert told["models"]["teacher"]["path"] == "/models/big"


def test_what_a_run_names_stays_on_the_list(launch, team, teacher):
    launch(config=DISTILL)
    with pytest.raises(Conflict):
        registry.delete(team.researcher, teacher)


def test_slots_of_one_role_are_told_by_their_paths_too(run, model, teacher):
    for place, row in enumerate((teacher, model)):
        RunSlot.objects.create(run=run, role="reward", path=f"rewards.{place}.model", model=row)
    told = Trainer(run).client.get(f"/api/v1/ingest/runs/{run.id}").json()["models"]
    assert told.keys() == {"base", "reward", "rewards.0.model", "rewards.1.model"}
    assert told["reward"] == told["rewards.0.model"] != told["rewards.1.model"]


def test_a_judge_is_named_by_its_version(launch, judge, names_a_judge):
    named = {**DISTILL, "objective": {"name": "distill", "teacher": "Grader v1 of us v2"}}
    run = launch(config=named)
    assert run.slots.get(role="grader").judge == judge
    for wrong in ("Grader v1 of us", "Grader v1 of us v3", "nobody v1"):
        with pytest.raises(ConfigInvalid) as refused:
            launch(config={**DISTILL, "objective": {"name": "distill", "teacher": wrong}})
        assert [problem.path for problem in refused.value.problems] == ["objective.teacher"]


def test_a_judge_of_another_workspace_is_not_there(launch, judge, team, names_a_judge):
    Judge.objects.filter(pk=judge.judge_id).update(workspace=team.outsider.workspace)
    with pytest.raises(ConfigInvalid):
        launch(config={**DISTILL, "objective": {"name": "distill", "teacher": "Grader v1 of us v2"}})


def test_a_slot_holds_one_row_and_a_path_one_slot(run, model, judge):
    for fields in ({"model": model, "judge": judge}, {}, {"path": "model.name", "model": model}):
        with pytest.raises(IntegrityError), transaction.atomic():
            RunSlot.objects.create(**{"run": run, "role": "x", "path": "x", **fields})


JUDGED = {"steps": 2, "scaffold": None, "rewards": [{"kind": "rubric", "judge": "Grader v1 of us v2"}]}


@pytest.fixture
def grader(judge) -> JudgeVersion:
    JudgeVersion.objects.filter(pk=judge.pk).update(spec=resolve_spec({"kind": "criterion"}).model_dump(mode="json"))
    judge.refresh_from_db()
    return judge


def test_a_run_hears_from_its_server_how_to_ask_its_judge(launch, grader):
    run = launch(config=JUDGED)
    (slot,) = run.slots.filter(role="judge")
    assert (slot.path, slot.judge) == ("rewards.0.judge", grader)
    told = Trainer(run).client.get(f"/api/v1/ingest/runs/{run.id}").json()["judges"]["Grader v1 of us v2"]
    assert told == {"spec": grader.spec, "key": grader.digest, "local": "", "adapters": [], "prices": None}
    grader.refresh_from_db()
    assert grader.first_used_at, "from now on it stays what it is"
    Run.objects.filter(pk=run.pk).update(state="finished")
    assert Trainer(run).client.get(f"/api/v1/ingest/runs/{run.id}").json().get("judges", {}) == {}


def test_a_judge_that_a_run_has_trained_is_loaded_with_its_adapters(team, model, tmp_path):
    fields = {"source": "run", "format": "peft", "path": str(tmp_path), "base": model}
    trained = RegisteredModel.objects.create(workspace=team.workspace, name="adapted", **fields)
    endpoint = endpoints.create_endpoint(team.researcher, "local", name="weights", registered_model=trained.pk)
    judge = create_judge(team.researcher, name="Own", spec={"kind": "criterion"}, endpoint=endpoint)
    found = grants.grant(judge)
    assert (found.local, found.adapters) == ("/models/smollm2", (str(tmp_path),))


def test_no_run_is_given_the_key_of_an_endpoint(launch, grader):
    Endpoint.objects.filter(pk=grader.endpoint_id).update(secret=seal("sk-of-the-endpoint"))
    run = launch(config=JUDGED)
    answer = Trainer(run).client.get(f"/api/v1/ingest/runs/{run.id}")
    assert answer.status_code == 200 and "sk-of-the-endpoint" not in answer.content.decode()
    assert answer.json()["judges_url"].endswith(f"/api/v1/ingest/runs/{run.id}/questions")


def speaking(team, folder, name, vocab) -> RegisteredModel:
    """A model whose folder has a tokenizer with these tokens."""
    folder.mkdir()
    told = {"model": {"vocab": vocab}, "added_tokens": [{"content": "<end>", "id": 9}]}
    (folder / "tokenizer.json").write_text(json.dumps(told))
    (folder / "config.json").write_text("{}")
    return RegisteredModel.objects.create(workspace=team.workspace, name=name, source="local", path=str(folder))


@pytest.mark.parametrize(
    ("recipe", "named", "path"),
    [
        ("policy", {"scaffold": None, "objective": {"name": "distill", "teacher": "far"}}, "objective.teacher"),
        ("distill", {"teachers": [{"model": "near", "stage": "a"}, {"model": "far"}]}, "teachers.1.model"),
    ],
)
def test_a_teacher_of_another_vocabulary_is_refused_at_its_field(team, launch, tmp_path, recipe, named, path):
    pupil = speaking(team, tmp_path / "pupil", "pupil", {"a": 0, "b": 1})
    speaking(team, tmp_path / "near", "near", {"b": 1, "a": 0})
    far = speaking(team, tmp_path / "far", "far", {"a": 0, "c": 1})
    config = {"steps": 2, "model": {"name": "pupil"}, **named}
    with pytest.raises(ConfigInvalid) as refused:
        launch(recipe=recipe, config=config)
    (problem,) = refused.value.problems
    assert problem.path == path and "far has another vocabulary than pupil" in problem.message
    assert "3 tokens and 3, 2 entries differ" in problem.message
    adapted = RegisteredModel.objects.create(
        workspace=team.workspace, name="on far", source="run", format="peft", path=str(tmp_path), base=far
    )
    assert "another vocabulary" in speaks_otherwise(adapted, pupil), "an adapter has the tokens of what it lies on"
    (tmp_path / "far" / "tokenizer.json").unlink()
    assert speaks_otherwise(far, pupil) == "", "nobody knows here; the run looks itself"


UNREADABLE = [
    pytest.param("[" * 200_000, id="nested too deep"),
    '{"model": []}',
    '{"model": {"vocab": {"a": []}}}',
    '{"model": {"vocab": {"a": 0}}, "added_tokens": [{"id": 9}]}',
    '{"model": {"vocab": {"a": 0}}, "added_tokens": {}}',
]


@pytest.mark.parametrize("told", UNREADABLE)
def test_a_vocabulary_that_cannot_be_read_is_left_to_the_run(team, tmp_path, told):
    pupil = speaking(team, tmp_path / "pupil", "pupil", {"a": 0})
    odd = speaking(team, tmp_path / "odd", "odd", {"a": 0})
    (tmp_path / "odd" / "tokenizer.json").write_text(told)
    assert speaks_otherwise(odd, pupil) == speaks_otherwise(pupil, odd) == ""
