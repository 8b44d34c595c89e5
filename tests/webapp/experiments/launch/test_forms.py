"""The form of a run: it is drawn from the schema and read back unchanged. Wrong values stay in their fields and are named there."""

from typing import Any

import pytest
from django.template.loader import render_to_string

from trainer.config import RECIPES, ConfigInvalid, resolve, upgrade_stored
from trainer.config.objectives.policy import CHOICES
from webapp.core.forms.formtree import Tree
from webapp.core.problems import Conflict
from webapp.datasets.versions import training_counts
from webapp.experiments.launch.forms import RunForm
from webapp.experiments.models import Run
from webapp.experiments.runs.pages import config_rows
from webapp.inference.models import RegisteredModel
from webapp.inference.registry import services as models
from webapp.inference.registry import uses

from ..conftest import Trainer, make_version


@pytest.fixture
def tree():
    return Tree(RECIPES["policy"].schema.model_json_schema())


def form_fields(group, **changes) -> dict[str, str]:
    """The fields that a browser sends for the drawn group. `changes` replaces some by path (`__` for a dot); None leaves one out."""
    found = {}

    def visit(part):
        for item in part.inputs:
            if item.kind != "bool" or item.checked:
                found[item.path] = item.value
        if part.optional and part.on:
            found[f"{part.path}.__on"] = "on"
        if part.is_list:
            found[f"{part.path}.__count"] = str(len(part.items))
        for child in [*part.groups, *part.items]:
            visit(child)

    visit(group)
    for path, value in changes.items():
        found[path.replace("__", ".")] = value
    return {path: value for path, value in found.items() if value is not None}


def test_the_defaults_survive_a_round_through_the_browser(tree):
    defaults = tree.defaults()
    read = tree.read(form_fields(tree.draw(defaults, {})))
    assert resolve("policy", read) == resolve("policy", {})


def test_remarks_about_the_data_are_shown_before_a_model_is_chosen(team, version):
    version.training = {"form": training_counts.FORM, "train": {"examples": 3, "rated": 2}, "heldout": {}}
    version.save()
    form = RunForm.blank(team.researcher, dataset=version.dataset.name)
    form.raw |= {"scaffold": None, "hint": {"unknown": 0.5}, "model": {**form.raw["model"], "name": ""}}
    page = render_to_string("experiments/_form.html", {"form": form})
    assert "Remarks about the data" in page and "1 of 3 training prompts (33%) have no pass rate yet" in page
    form = RunForm(team.researcher, raw=form.raw | {"steps": 0}, dataset=form.dataset)
    assert form.notes == [], "a problem of another field is said there"


def test_a_new_form_proposes_data_that_the_recipe_can_use(team):
    make_version(team.owner, "Answers", rubrics=False)
    scored = make_version(team.owner, "Prompts")
    make_version(team.owner, "Judged prompts", verifier=None)
    assert RunForm.blank(team.researcher).dataset == f"{scored.dataset_id}:1"
    assert RunForm.blank(team.researcher, dataset="Answers").dataset != f"{scored.dataset_id}:1", "asked for by name"


def test_a_reward_model_as_the_reward_brings_data_that_fit_and_no_scaffold(team, as_researcher, model):
    scores = RegisteredModel.objects.create(
        workspace=team.workspace, name="rm", source="local", path="/models/rm", head="scalar"
    )
    questions = make_version(team.owner, "Questions", rubrics=False)
    make_version(team.owner, "Only to train on", rubrics=False, heldout=0)
    (url,) = [use.url for use in uses.uses_of(scores) if "recipe=policy&" in use.url]
    form = as_researcher.get(url).context["form"]
    assert (form.dataset, form.raw["scaffold"]) == (f"{questions.dataset_id}:1", None)
    assert form.check(), form.problems
    asked_for = as_researcher.get(f"{url}&at.scaffold.alpha=100").context["form"]
    assert asked_for.raw["scaffold"]["alpha"] == "100"


def test_a_link_switches_a_section_off_also_beside_a_dataset(as_researcher, version):
    address = f"/runs/new?recipe=policy&dataset={version.dataset_id}&at.scaffold="
    form = as_researcher.get(address).context["form"]
    assert form.raw["scaffold"] is None and not form.check() and "scaffold" not in form.problems


def test_every_default_of_the_schema_is_shown(tree):
    assert tree.defaults() == resolve("policy", {}).model_dump(mode="json")


def test_what_is_not_a_number_stays_as_typed_and_is_refused_at_its_field(team, version, model, tree):
    form = RunForm.posted(team.researcher, form_fields(tree.draw(tree.defaults(), {}), optim__lr="fast", steps=""))
    assert not form.check()
    assert {"optim.lr", "steps"} <= set(form.problems)
    inputs = {item.path: item for group in [form.group, *form.group.groups] for item in group.inputs}
    assert inputs["optim.lr"].value == "fast" and inputs["optim.lr"].error


def test_an_optional_section_is_off_when_its_switch_is(tree):
    post = form_fields(tree.draw(tree.defaults(), {}))
    del post["scaffold.__on"]
    assert tree.read(post)["scaffold"] is None


def test_parts_of_the_reward_are_added_and_removed(team, tree):
    post = form_fields(tree.draw(tree.defaults(), {})) | {"action": "add:rewards"}
    more = RunForm.posted(team.researcher, post)
    assert len(more.raw["rewards"]) == 2
    less = RunForm.posted(team.researcher, form_fields(more.group) | {"action": "remove:rewards.0"})
    assert len(less.raw["rewards"]) == 1
    RunForm.posted(team.researcher, post | {"action": "add:steps"})  # steps is not a list, so nothing happens
    RunForm.posted(team.researcher, post | {"action": "remove:rewards.9"})


PARTS = [
    {"kind": "overlong", "name": "length", "weight": 0.5, "soft_tokens": 40},
    {"kind": "judge", "name": "wins", "judge": "Comparer v2", "protocol": "pairwise", "against": "greedy"},
    {"kind": "format", "tags": ["think"], "at_least": 0.0, "shadow": True},
]


def test_parts_of_every_kind_survive_a_round_through_the_browser(tree):
    raw = resolve("policy", {"rewards": PARTS}).model_dump(mode="json")
    assert resolve("policy", tree.read(form_fields(tree.draw(raw, {})))).model_dump(mode="json") == raw


def test_a_part_becomes_one_of_another_kind_and_keeps_what_both_have(team, tree):
    raw = resolve("policy", {"rewards": PARTS}).model_dump(mode="json")
    post = form_fields(tree.draw(raw, {})) | {"rewards.0.__drawn": "overlong", "rewards.0.kind": "verifier"}
    first = RunForm.posted(team.researcher, post).raw["rewards"][0]
    kept: Any = resolve("policy", {"rewards": [{"kind": "verifier", "name": "length", "weight": 0.5}]})
    assert first == kept.rewards[0].model_dump(mode="json")


def test_a_problem_of_a_part_stands_at_its_field(team, version, model, tree):
    raw = tree.defaults() | {"rewards": [*PARTS, {"kind": "http"}]}
    form = RunForm(team.researcher, raw=raw)
    form.check()
    assert form.problems["rewards.3.endpoint"].startswith("name the endpoint") and "rewards.3.endpoint" not in (
        form.other_problems
    )


def test_problems_say_where_they_are_in_the_order_of_the_page(team, version, model, tree):
    form = RunForm(team.researcher, raw=tree.defaults() | {"steps": "none", "optim": {"lr": "fast"}})
    assert not form.check() and len(form.to_fix) == len(form.problems) == 3
    assert form.to_fix == [("f-dataset", "Dataset"), ("f-steps", "Steps"), ("f-optim-lr", "Optimiser: Learning rate")]
    form.as_json = True
    assert form.to_fix == []
    of_a_part = RunForm(team.researcher, raw=tree.defaults() | {"rewards": [*PARTS, {"kind": "http"}]})
    assert not of_a_part.check() and ("f-rewards-3-endpoint", "Rewards 4: Endpoint") in of_a_part.to_fix


def test_what_was_mended_is_no_problem_any_more(team, version, model, tree):
    form = RunForm.blank(team.researcher)
    form.raw["optim"]["lr"] = "fast"
    assert not form.check() and form.problems
    form.raw["optim"]["lr"] = 1e-5
    assert form.check() and form.problems == {}


def test_form_and_json_hold_the_same_config(team, tree):
    form = RunForm.posted(team.researcher, form_fields(tree.draw(tree.defaults(), {}), steps="7") | {"action": "json"})
    assert form.as_json
    back = RunForm.posted(team.researcher, {"mode": "json", "json": form.json_text, "action": "form"})
    assert not back.as_json and back.raw == form.raw


@pytest.mark.parametrize(
    "text", ["{", "[1]", "null", '{"optim": 3}', '{"rewards": [1]}', '{"scaffold": "x"}', '{"steps": NaN}']
)
def test_broken_json_is_a_message_and_the_text_stays(team, version, model, text):
    form = RunForm.posted(
        team.researcher, {"mode": "json", "json": text, "action": "form", "dataset": f"{version.dataset_id}:1"}
    )
    assert not form.check() and form.problems
    assert form.json_text == text
    assert form.group.errors >= 0  # even a config of the wrong shape can be drawn


def test_derived_numbers_follow_the_config_and_admit_what_they_do_not_know(team, tree):
    def derived(raw):
        return [item["value"] for item in RunForm(team.researcher, raw=raw).derived]

    assert derived(tree.defaults()) == ["32", "1", "1,280", "81,920"]
    raw = tree.defaults() | {"optim": {"minibatch_size": 8, "epochs_per_step": 2}}
    assert derived(raw)[1] == "8"
    assert derived({"rollout": {"group_size": "many"}})[0] == "–"


def test_launching_goes_to_the_run_and_the_same_form_launches_once(as_researcher, version, model, tree):
    post = form_fields(tree.draw(tree.defaults(), {}), steps="3") | {
        "dataset": f"{version.dataset_id}:1",
        "action": "launch",
        "key": "k1",
    }
    first, second = (as_researcher.post("/runs/new", post) for _ in range(2))
    assert first["Location"] == second["Location"]
    assert Run.objects.get().config["steps"] == 3


def test_a_wrong_form_comes_back_with_its_errors_and_loses_nothing(as_researcher, version, model, tree):
    post = form_fields(tree.draw(tree.defaults(), {}), optim__minibatch_size="5", rollout__temperature="warm")
    answer = as_researcher.post(
        "/runs/new", post | {"dataset": f"{version.dataset_id}:1", "name": "try", "action": "launch"}
    )
    shown = answer.content.decode()
    assert answer.status_code == 422 and not Run.objects.exists()
    assert 'value="warm"' in shown and 'value="try"' in shown and 'id="f-rollout-temperature-note"' in shown
    fixed = as_researcher.post("/runs/new", post | {"rollout.temperature": "1", "dataset": f"{version.dataset_id}:1"})
    assert "do not divide into mini-batches of 5" in fixed.content.decode()


def test_a_sampler_that_is_not_installed_is_said_at_its_field(as_researcher, version, model, tree, vllm_environment):
    post = form_fields(tree.draw(tree.defaults(), {}), sampler__kind="vllm")
    answer = as_researcher.post("/runs/new", post | {"dataset": f"{version.dataset_id}:1", "action": "launch"})
    shown = answer.content.decode()
    assert answer.status_code == 422 and not Run.objects.exists()
    assert (
        'id="f-sampler-kind-note"' in shown
        and "in its folder `make gpu` installs it where there is a GPU, `make vllm`" in shown
    )


def test_a_fork_is_filled_in_and_marks_what_changed(as_researcher, run, tree):
    shown = as_researcher.get(f"/runs/{run.id}/fork").content.decode()
    assert 'name="steps" value="4"' in shown and "is-changed" not in shown
    post = form_fields(tree.draw(run.config, {}, run.config), steps="8") | {
        "dataset": f"{run.dataset_version.dataset_id}:1"
    }
    assert "was 4" in as_researcher.post(f"/runs/{run.id}/fork", post).content.decode()
    answer = as_researcher.post(f"/runs/{run.id}/fork", post | {"action": "launch"})
    assert Run.objects.get(id=answer["Location"].rsplit("/", 1)[1]).forked_from_id == run.id


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("decoupled", [False, True])
def test_a_copy_of_a_run_of_an_older_version_means_what_that_run_meant(as_researcher, team, run, decoupled, as_json):
    """The config as older versions stored it: the cap is null, and later fields are missing."""
    run.config["optim"]["weight_decay"] = 0.1
    del run.config["data"]["unjudged"], run.config["optim"]["decay"], run.config["rollout"]["truncated"]
    run.config["objective"] |= {"weight_cap": None, "decoupled": decoupled}
    run.config["scaffold"] = None  # `decoupled` can be combined with only a few of its ratio modes
    run.save()
    shown = as_researcher.get(f"/runs/{run.id}/fork").content.decode()
    assert "is-changed" not in shown and "unjudged" in shown
    form = RunForm.of_run(team.researcher, run)
    post = form_fields(form.group) | {"recipe": "policy", "dataset": form.dataset, "action": "launch"}
    if as_json:
        form._press("json")
        post = {name: post[name] for name in ("recipe", "dataset", "action")} | {"mode": "json", "json": form.json_text}
    answer = as_researcher.post(f"/runs/{run.id}/fork", post)
    assert answer.status_code == 302, answer.content.decode()
    copy: Any = resolve("policy", Run.objects.get(id=answer["Location"].rsplit("/", 1)[1]).config)
    assert copy == resolve("policy", upgrade_stored("policy", run.config))
    assert (copy.optim.decay, copy.data.unjudged) == ("all", "drop_prompts")
    assert copy.objective.weight_cap == (1e9 if decoupled else 2.0)


def test_a_dataset_of_another_workspace_cannot_be_named(team, version, model, tree):
    post = form_fields(tree.draw(tree.defaults(), {})) | {"dataset": f"{version.dataset_id}:1"}
    form = RunForm.posted(team.outsider, post)
    assert not form.check() and "dataset" in form.problems


def knobs(group) -> dict[str, str]:
    """The inputs of the chosen objective, as the form draws them."""
    objective = next(child for child in group.groups if child.path == "objective")
    return {item.path.removeprefix("objective."): item.value for item in objective.inputs}


def test_another_objective_brings_its_own_knobs_and_their_defaults(team, version, model, tree):
    post = form_fields(tree.draw(tree.defaults(), {})) | {"objective.__drawn": "grpo", "objective.name": "gspo"}
    drawn = knobs(RunForm.posted(team.researcher, post).group)
    assert (drawn["name"], drawn["eps_low"], drawn["eps_high"]) == ("gspo", "0.0003", "0.0004")
    post["objective.name"] = "oapl"
    assert knobs(RunForm.posted(team.researcher, post).group) == {"name": "oapl", "beta1": "1", "beta2": "0.001"}


def test_what_was_typed_comes_along_where_the_other_objective_has_it(team, tree):
    post = form_fields(tree.draw(tree.defaults(), {})) | {"objective.__drawn": "grpo", "objective.eps_low": "0.1"}
    drawn = knobs(RunForm.posted(team.researcher, post | {"objective.name": "icepop"}).group)
    assert (drawn["eps_low"], drawn["eps_high"], drawn["pop_high"]) == ("0.1", "0.28", "2")
    assert "eps_low" not in knobs(RunForm.posted(team.researcher, post | {"objective.name": "kimi"}).group)


@pytest.mark.parametrize("name", CHOICES)
def test_every_objective_survives_a_round_through_the_browser(tree, name):
    given = {"name": name, "teacher": "big"} if name == "distill" else {"name": name}
    config = resolve("policy", {"objective": given, "scaffold": None})
    read = tree.read(form_fields(tree.draw(config.model_dump(mode="json"), {})) | {"objective.__drawn": name})
    assert resolve("policy", read) == config


def test_an_objective_that_cannot_work_is_refused_at_the_field_that_is_folded_open(team, version, model, tree):
    post = form_fields(tree.draw(tree.defaults(), {})) | {"objective.__drawn": "grpo", "objective.name": "icepop"}
    form = RunForm.posted(team.researcher, post | {"dataset": f"{version.dataset_id}:1"})
    assert not form.check() and set(form.problems) == {"scaffold.ratio_mode"}
    assert next(child for child in form.group.groups if child.path == "scaffold").advanced_open
    nonsense = RunForm.posted(team.researcher, post | {"objective.name": "ppo", "dataset": f"{version.dataset_id}:1"})
    assert not nonsense.check() and "must be one of" in nonsense.problems["objective.name"]


def test_a_teacher_must_be_registered_and_its_place_reaches_the_run(team, version, model, launch):
    def distilled(teacher):
        return launch(config={"steps": 2, "scaffold": None, "objective": {"name": "distill", "teacher": teacher}})

    with pytest.raises(ConfigInvalid) as refused:
        distilled("nobody")
    assert [problem.path for problem in refused.value.problems] == ["objective.teacher"]
    run = distilled(model.name)
    assignment = Trainer(run).client.get(f"/api/v1/ingest/runs/{run.id}").json()
    assert assignment["models"]["teacher"]["path"] == model.path
    with pytest.raises(Conflict):
        models.delete(team.researcher, model)


def test_the_config_page_compares_with_the_defaults_of_the_objective_that_was_chosen(launch):
    run = launch(config={"steps": 4, "scaffold": None, "objective": {"name": "kimi", "tau": 0.5}})
    changed = {row.path for row in config_rows(run) if row.changed and row.path.startswith("objective")}
    assert changed == {"objective.tau"}


def test_a_new_form_begins_with_what_the_data_has(team, model):
    demonstrations = make_version(team.owner, "Demonstrations", rubrics=False, reference="Red.")
    form = RunForm.blank(team.researcher, recipe="sft")
    assert form.dataset == f"{demonstrations.dataset_id}:1" and form.raw["data"]["source"] == "references"
    assert form.check(), form.problems
    form.raw["data"]["source"] = "chosen"
    assert not form.check()
    assert form.problems["data.source"].endswith("it has 3 with 'references'")


def test_what_a_role_has_of_the_optimiser_for_itself_is_a_field_of_its_own(as_researcher, version, model):
    turns = Tree(RECIPES["alternating"].schema.model_json_schema())
    plain = form_fields(turns.draw(turns.defaults(), {}))
    assert plain["writer.optim.lr"] == "" and resolve("alternating", turns.read(plain)) == resolve("alternating", {})
    read = turns.read(plain | {"writer.optim.lr": "7e-4", "judge.optim.minibatch_size": "7"})
    made: Any = resolve("alternating", read)
    assert (made.turn("writer").optim.lr, made.turn("judge").optim.lr) == (7e-4, made.optim.lr)
    wrong = plain | {"writer.optim.lr": "2", "dataset": f"{version.dataset_id}:1", "action": "launch"}
    answer = as_researcher.post("/runs/new?recipe=alternating", wrong | {"recipe": "alternating"})
    assert answer.status_code == 422 and 'id="f-writer-optim-lr-note"' in answer.content.decode()
    assert not Run.objects.exists()
