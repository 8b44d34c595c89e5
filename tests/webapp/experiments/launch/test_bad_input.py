"""Input that a launch cannot use, case by case. It is refused before the queue, at its field, with the remedy, and nothing is written.
`tests/trainer/loops/policy/test_bad_input.py` tests the problems that only show in the run.

A model that cannot be registered (an adapter without its base, the tokenizer of another model): the last tests here.
"""

import json
from hashlib import sha256

import pytest
from django.template.loader import render_to_string
from django.utils import timezone

from tests.team import browser
from trainer import reward_process
from trainer.config import ConfigInvalid
from trainer.contracts import ModelFacts, ModelFile, Preference, Response
from trainer.judges.spec import resolve as resolve_spec
from webapp.evaluation.models import Evaluation
from webapp.experiments.launch import checks
from webapp.experiments.launch.forms import RunForm
from webapp.experiments.models import Run
from webapp.inference.folders import tokenizers
from webapp.inference.models import Endpoint, RegisteredModel
from webapp.inference.registry import services as registry
from webapp.judging.models import Judge, JudgeVersion
from webapp.weights.models import WeightsJob

from ..conftest import make_version
from .test_forms import form_fields

OVERLONG = {"kind": "overlong", "soft_tokens": 20}


@pytest.fixture
def grader(team) -> JudgeVersion:
    endpoint = Endpoint.objects.create(workspace=team.workspace, name="ward", kind="chat", url="https://x", model="m")
    row = Judge.objects.create(workspace=team.workspace, name="Grader", kind="criterion")
    spec = resolve_spec({"kind": "criterion"}).model_dump(mode="json")
    return JudgeVersion.objects.create(judge=row, number=2, spec=spec, endpoint=endpoint, digest="e" * 64)


def refused(launch, path: str, **given) -> str:
    """The message at this field. There is no other message, and no run is written."""
    with pytest.raises(ConfigInvalid) as caught:
        launch(**given)
    assert not Run.objects.exists()
    (problem,) = caught.value.problems
    assert problem.path == path
    return problem.message


def rewarded(*parts, expression="") -> dict:
    return {"config": {"steps": 2, "scaffold": None, "rewards": list(parts), "reward_expression": expression}}


# The prompts that a phase names


def test_a_recipe_without_phases_says_on_its_form_what_it_has_instead(team, version, model, launch):
    page = render_to_string("experiments/_form.html", {"form": RunForm.blank(team.researcher, "alternating")})
    assert "No phases: its warm-up and its turns set who is trained and when." in page
    for recipe in ("policy", "iterative_dpo"):
        assert "No phases" not in render_to_string(
            "experiments/_form.html", {"form": RunForm.blank(team.researcher, recipe)}
        )
    said = refused(launch, "phases", recipe="chain", config={"steps": 4, "phases": [{"step": 2}]})
    assert said == "this recipe has no phases: its stages set what changes and when; remove them"


@pytest.mark.parametrize(
    ("names", "field", "words"),
    [
        (
            {"tags": ["logic", "proofs"]},
            "tags",
            "no training prompt has the tag 'proofs'; the tags of the data are logic (3)",
        ),
        (
            {"domains": ["art", "law"]},
            "domains",
            "no training prompt is of the domain 'art' or 'law'; the domains of the data are maths (3)",
        ),
    ],
)
def test_a_phase_for_prompts_that_the_data_lacks_is_refused_with_what_there_is(
    team, launch, model, names, field, words
):
    version = make_version(team.owner, "labelled", tags=("logic",), domain="maths", digest="f" * 64)
    config = {"steps": 4, "phases": [{"step": 2, "prompts": "some"} | names]}
    choice = checks.DatasetChoice(id=version.dataset_id)
    assert refused(launch, f"phases.0.{field}", config=config, dataset=choice) == words
    there = {"tags": ["logic"], "domains": ["maths"]}
    assert launch(config={"steps": 4, "phases": [{"step": 2, "prompts": "some"} | there]}, dataset=choice)


def test_a_phase_by_tags_of_data_without_any_is_refused(launch):
    config = {"steps": 4, "phases": [{"step": 2, "prompts": "some", "tags": ["logic"]}]}
    assert refused(launch, "phases.0.tags", config=config).endswith("has the tag 'logic'; the data has no tags")


# Steps that a run would not reach


def test_a_stage_that_the_run_ends_before_is_refused_where_a_person_launches_it(launch):
    stages = [{"do": "reinforce", "steps": 80}, {"do": "imitate", "steps": 20}]
    said = refused(launch, "stages.1", recipe="chain", config={"steps": 60, "stages": stages})
    assert "the run ends with step 60, and the stage would begin with step 81" in said
    assert launch(recipe="chain", config={"steps": 81, "stages": stages})


def test_the_form_marks_the_stage_beforehand(team, version, model):
    form = RunForm.blank(team.researcher, "chain")
    form.raw |= {"steps": 10}
    assert not form.check()
    page = render_to_string("experiments/_form.html", {"form": form})
    assert page.count('class="warn">never entered: the run ends with step 10') == 2
    for first in (16, 26):
        assert f"the run ends with step 10, and the stage would begin with step {first}" in page


@pytest.mark.parametrize(
    ("phase", "path", "words"),
    [
        ({"temperature": "set"}, "temperature", "samples none, so it has no temperature"),
        ({"begins": "pass_rate", "prompts": "all"}, "begins", "no pass rate to wait for"),
        (
            {"begins": "plateau", "metric": "eval/accuracy", "prompts": "all"},
            "window",
            "the phase cannot begin before step 191",
        ),
        ({"step": 50, "prompts": "all"}, "step", "the run ends after step 40"),
    ],
)
def test_a_phase_that_a_run_on_pairs_cannot_have_is_refused_at_its_field(launch, team, phase, path, words):
    pair = (Response(id="a", text="one"), Response(id="b", text="two"))
    judged = (Preference(a="a", b="b", strength=1, rater="r"),)
    make_version(team.owner, name="pairs", responses=pair, preferences=judged)
    config = {"steps": 40, "phases": [phase]}
    said = refused(launch, f"phases.0.{path}", recipe="dpo", config=config, dataset=checks.DatasetChoice(name="pairs"))
    assert words in said


# Data that a recipe cannot use


@pytest.mark.parametrize(
    ("make", "recipe", "path", "words"),
    [
        ({"train": 0}, "policy", "dataset", "has no training"),
        ({"rubrics": False}, "policy", "dataset", "has no training"),
        ({"heldout": 0}, "policy", "evaluation.max_examples", "set this to 0"),
        ({"verifier": None}, "policy", "data.unjudged", "5 criteria of 5 prompts have no verifier"),
        ({}, "reward_model", "dataset", "pairs"),
        ({}, "dpo", "dataset", "pairs"),
        ({}, "sft", "dataset", "conversations"),
    ],
)
def test_data_that_a_recipe_cannot_use(launch, team, make, recipe, path, words):
    unfit = make_version(team.owner, name="unfit", **make)
    said = refused(launch, path, recipe=recipe, dataset=checks.DatasetChoice(id=unfit.dataset_id), config={"steps": 4})
    assert words in said


def test_a_config_that_cannot_be_read_says_nothing_about_the_data_that_its_reward_needs(launch, team):
    """It may name a reward model, and then prompts without rubrics are enough."""
    make_version(team.owner, name="plain", rubrics=False)
    given = {"config": {"steps": 4, "rollout": {"group": 4}}, "dataset": checks.DatasetChoice(name="plain")}
    with pytest.raises(ConfigInvalid) as caught:
        launch(recipe="policy", **given)
    assert [each.path for each in caught.value.problems] == ["rollout.group"]
    with pytest.raises(ConfigInvalid) as caught:
        launch(recipe="dpo", config={"stepz": 4}, dataset=given["dataset"])
    assert [each.path for each in caught.value.problems] == ["stepz", "dataset"], "every config of it needs pairs"


# A judge without an endpoint, and other judges that a reward cannot ask


@pytest.mark.parametrize(
    ("part", "path", "words"),
    [
        ({"kind": "rubric", "judge": "Nobody v1"}, "rewards.0.judge", "no judge version is called 'Nobody v1'"),
        ({"kind": "rubric", "judge": "Grader"}, "rewards.0.judge", "name it with its version, such as 'Grader v2'"),
        ({"kind": "judge", "judge": "Grader v2", "protocol": "pointwise"}, "rewards.0.judge", "needs 'pointwise'"),
        ({"kind": "http", "endpoint": "mine"}, "rewards.0.endpoint", "no reward service is called 'mine'"),
        ({"kind": "python", "entry": "mine"}, "rewards.0.entry", "not allowed here"),
        ({"kind": "reward_model", "model": "gone"}, "rewards.0.model", "no model called 'gone' is registered"),
        (
            {"kind": "reward_model", "model": "smollm2-135m-instruct"},
            "rewards.0.model",
            "writes text; a reward needs a model that scores texts",
        ),
    ],
)
def test_whom_a_reward_cannot_ask(launch, grader, part, path, words):
    assert words in refused(launch, path, **rewarded(part))


def test_a_judge_without_endpoint(launch, grader):
    Endpoint.objects.update(archived_at=timezone.now())
    said = refused(launch, "rewards.0.judge", **rewarded({"kind": "rubric", "judge": "Grader v2"}))
    assert said == (
        "'Grader v2' cannot be asked, because its endpoint 'ward' is archived. Restore the endpoint, or name another judge"
    )
    Endpoint.objects.update(archived_at=None)
    Judge.objects.update(archived_at=timezone.now())
    said = refused(launch, "rewards.0.judge", **rewarded({"kind": "rubric", "judge": "Grader v2"}))
    assert "is archived; restore it on its page" in said


def test_a_function_that_is_allowed_and_not_installed(launch, monkeypatch):
    monkeypatch.setenv(reward_process.ALLOWED, "polite")
    said = refused(launch, "rewards.0.entry", **rewarded({"kind": "python", "entry": "polite"}))
    assert said == "no installed package has an entry point 'polite' in the group touchstone.rewards"


# An expression with an unknown part or a division by zero


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("rubric + quality", "column 10: unknown part “quality”; known: rubric, overlong"),
        ("rubric / 0 + overlong", "column 10: expected something to divide by, found 0"),
        ("rubric / (1 - 1) * overlong", "expected something to divide by"),
    ],
)
def test_an_expression_that_cannot_be_computed(launch, as_researcher, team, version, model, expression, words):
    given = rewarded({"kind": "rubric"}, OVERLONG, expression=expression)
    assert words in refused(launch, "reward_expression", **given)
    form = RunForm.blank(team.researcher)
    form.raw |= given["config"]
    page = as_researcher.post("/runs/new", form_fields(form.group)).content.decode()
    assert words in page, "the form says it beside the field while it is typed"


# A model that no run could load


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", "vocab_size": 3}))
    (tmp_path / "model.safetensors").write_bytes(b"")
    (tmp_path / "chat_template.jinja").write_text("{{ messages }}")
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {"vocab": {"a": 0, "b": 1, "c": 2}}}))
    return tmp_path


def test_a_tokenizer_of_another_model(api, folder):
    body = {"name": "mixed", "source": "local", "path": str(folder)}
    assert api.post("/models", body).status_code == 201
    (folder / "tokenizer.json").write_text(json.dumps({"model": {"vocab": [["a", 0.0]] * 7}}))
    answer = api.post("/models", body | {"name": "other"})
    (field,) = answer.json()["error"]["fields"]
    assert (answer.status_code, field["path"]) == (422, "path")
    assert field["message"] == "its tokenizer is another model's: it has 7 tokens, and the weights know 3"
    assert RegisteredModel.objects.count() == 1
    added = {"model": {"vocab": {"a": 0}}, "added_tokens": [{"id": 8, "content": "<x>"}]}
    (folder / "tokenizer.json").write_text(json.dumps(added))
    (field,) = api.post("/models", body | {"name": "other"}).json()["error"]["fields"]
    assert "it has 9 tokens" in field["message"]
    (folder / "tokenizer.json").write_text("[" * 200_000)
    (field,) = api.post("/models", body | {"name": "other"}).json()["error"]["fields"]
    assert "its tokenizer.json cannot be read" in field["message"]


def test_a_reward_model_with_another_tokenizer(launch, team, api, version, model, folder):
    """The tokenizer has the same size, so the weights accept its tokens. Only the recorded tokenizer shows the difference."""
    file = folder / "tokenizer.json"
    told = ModelFacts(name="rm", role="reward_model", format="hf", head="scalar", base="b", files=(as_told(file),))
    reward = registry.add_output(
        team.workspace, "rm", "", path=str(folder), facts=told, digest="d" * 64, base=model, run=1
    )
    part = {"kind": "reward_model", "model": reward.name}
    training = file.read_text()
    file.write_text(json.dumps({"model": {"vocab": {"x": 0, "y": 1, "z": 2}}}))
    words = "the tokenizer in the folder of rm is another than when it was trained"
    assert words in refused(launch, "rewards.0.model", **rewarded(part))
    form = RunForm.blank(team.researcher)
    form.raw |= rewarded(part)["config"]
    assert words in browser(team.researcher).post("/runs/new", form_fields(form.group)).content.decode()
    asked = {"kind": "score", "model": reward.pk, "dataset_version": version.pk}
    (field,) = api.post("/weights-jobs", asked).json()["error"]["fields"]
    assert field["path"] == "model" and words in field["message"]
    asked = {
        "recipe": "reward_benchmark",
        "config": {"models": [{"model": reward.pk}]},
        "dataset": {"id": version.dataset_id},
    }
    (field,) = api.post("/evaluations", asked).json()["error"]["fields"]
    assert field["path"] == "models.0.model" and words in field["message"]
    assert not WeightsJob.objects.exists() and not Evaluation.objects.exists()
    file.write_text(training)
    assert launch(**rewarded(part)).state == "queued"


def as_told(file) -> ModelFile:
    return ModelFile(path=file.name, bytes=file.stat().st_size, digest=sha256(file.read_bytes()).hexdigest())


def test_a_tokenizer_that_nobody_recorded_is_measured_against_the_weights(team, folder):
    (folder / "tokenizer.json").write_text(json.dumps({"model": {"vocab": {str(n): n for n in range(7)}}}))
    fields = {"source": "local", "path": str(folder), "facts": {"vocab_size": 3}}
    model = RegisteredModel.objects.create(workspace=team.workspace, name="old", **fields)
    assert tokenizers.unloadable(model) == (
        "old cannot be loaded: its tokenizer is another model's: it has 7 tokens, and the weights know 3"
    )
    laid = RegisteredModel.objects.create(
        workspace=team.workspace, name="a", source="run", format="peft", base=model, path=str(folder)
    )
    assert "old cannot be loaded" in tokenizers.unloadable(laid), "what it is laid on is loaded, too"
    for broken in ("{", "[" * 200_000):
        (folder / "tokenizer.json").write_text(broken)
        assert "the tokenizer of old cannot be read" in tokenizers.unloadable(model)


def test_an_adapter_without_its_base(api, folder):
    (folder / "config.json").rename(folder / "adapter_config.json")
    answer = api.post("/models", {"name": "half", "source": "local", "path": str(folder)})
    (field,) = answer.json()["error"]["fields"]
    assert field["path"] == "path" and "holds an adapter of type None; only LORA can be used" in field["message"]
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA"}))
    (folder / "model.safetensors").rename(folder / "adapter_model.safetensors")
    (field,) = api.post("/models", {"name": "half", "source": "local", "path": str(folder)}).json()["error"]["fields"]
    assert field["path"] == "base" and "choose the model that it was trained on" in field["message"]
