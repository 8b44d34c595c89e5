"""The choices in the fields of a run's form: the objects of this workspace, and how to get missing ones."""

import re

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from trainer import reward_process
from trainer.config import RECIPES
from trainer.contracts import Preference, Response
from trainer.judges.spec import resolve as resolve_spec
from webapp.core.forms.formtree import Input, Tree
from webapp.datasets import housekeeping
from webapp.evaluation.models import Evaluation
from webapp.experiments.launch.forms import RunForm
from webapp.inference.models import Endpoint, RegisteredModel
from webapp.judging.models import Judge, JudgeVersion

from ..conftest import make_version
from .test_forms import form_fields


def judge(team, name="Grader", kind="criterion", endpoint="here", **fields) -> JudgeVersion:
    asked, _ = Endpoint.objects.get_or_create(
        workspace=team.workspace, name=endpoint, defaults={"kind": "chat", "url": "https://x", "model": "m", **fields}
    )
    row = Judge.objects.create(workspace=team.workspace, name=name, kind=kind)
    spec = resolve_spec({"kind": kind}).model_dump(mode="json")
    return JudgeVersion.objects.create(judge=row, number=1, spec=spec, endpoint=asked, digest=name.ljust(64, "x"))


def scorer(team, name="rm-1", **fields) -> RegisteredModel:
    return RegisteredModel.objects.create(
        workspace=team.workspace, name=name, source="local", path=f"/models/{name}", head="scalar", **fields
    )


def drawn(team, *parts, recipe="policy") -> dict[str, Input]:
    form = RunForm.blank(team.researcher, recipe)
    if parts:
        form.raw["rewards"] = list(parts)
    return {each.path: each for each in form.group.every_input()}


def offered(field: Input) -> list[str]:
    return [value for value, _ in field.options]


def test_each_part_offers_whom_it_can_ask(team, version, model):
    judge(team)
    judge(team, "Comparer", "pairwise")
    judge(team, "Replayed", "criterion", "tape")
    Endpoint.objects.filter(name="tape").update(kind="recorded", url="")
    judge(team, "Old")
    Judge.objects.filter(name="Old").update(archived_at=timezone.now())
    scorer(team)
    fields = drawn(
        team,
        {"kind": "rubric"},
        {"kind": "judge", "protocol": "pairwise"},
        {"kind": "judge", "name": "second", "protocol": "criterion"},
        {"kind": "reward_model"},
    )
    assert offered(fields["rewards.0.judge"]) == offered(fields["rewards.2.judge"]) == ["Grader v1"]
    assert offered(fields["rewards.1.judge"]) == ["Comparer v1"]
    assert offered(fields["rewards.3.model"]) == ["rm-1"] and offered(fields["model.name"]) == [model.name]


def test_another_workspace_offers_nothing_of_ours(team, as_outsider, version, model):
    judge(team)
    scorer(team)
    form = RunForm.blank(team.outsider)
    form.raw["rewards"] = [{"kind": "rubric"}, {"kind": "reward_model"}]
    fields = {each.path: each for each in form.group.every_input()}
    for path in ("rewards.0.judge", "rewards.1.model", "model.name"):
        assert not fields[path].options and fields[path].nothing, path


@pytest.mark.parametrize(
    ("part", "field", "words"),
    [
        ({"kind": "rubric"}, "judge", "No judge of this workspace can do this. Make one"),
        ({"kind": "reward_model"}, "model", "No model that scores texts is there yet"),
        ({"kind": "http"}, "endpoint", "This workspace has no reward service"),
        ({"kind": "python"}, "entry", "No function is allowed here"),
    ],
)
def test_an_empty_list_says_how_to_get_something(as_researcher, team, version, model, part, field, words):
    form = RunForm.blank(team.researcher)
    form.raw["rewards"] = [part]
    shown = as_researcher.post("/runs/new", form_fields(form.group)).content.decode()
    text = " ".join(shown.split('id="f-rewards-0-' + field + '-note"')[1].split("</div>")[0].split())

    assert words in re.sub(r"<[^>]*>", "", text)


def test_functions_are_those_that_the_installation_allows(team, version, model, monkeypatch):
    monkeypatch.setenv(reward_process.ALLOWED, "polite,gone")
    monkeypatch.setattr(reward_process, "entry_points", lambda group, name: [name] if name == "polite" else [])
    assert offered(drawn(team, {"kind": "python"})["rewards.0.entry"]) == ["polite"]


def test_what_is_named_and_gone_stays_and_is_refused_at_its_field(as_researcher, team, version, model):
    form = RunForm.blank(team.researcher)
    form.raw["rewards"] = [{"kind": "rubric", "judge": "Grader v7"}]
    shown = as_researcher.post("/runs/new", form_fields(form.group)).content.decode()
    assert "Grader v7 (not offered here)" in shown and "no judge version is called" in shown


@pytest.mark.parametrize("registered", [True, False])
def test_a_model_that_was_never_registered_is_named_nowhere(as_researcher, team, version, registered):
    """The default of the config is the model of the demo. The form said "was smollm2-135m-instruct" where there was no demo."""
    if registered:
        RegisteredModel.objects.create(workspace=team.workspace, name="ours", source="hub", path="o/m")
    shown = as_researcher.get("/runs/new?recipe=policy").content.decode()
    field = shown.partition('id="f-model-name"')[0].rpartition('<div class="field')[2]
    field += shown.partition('id="f-model-name"')[2].partition('id="f-model-name-note"')[0]
    assert "smollm2" not in field and "is-changed" not in field
    assert ('value="ours" selected' in field) == registered


def test_a_long_list_is_searched_by_name(as_researcher, team, version, model):
    RegisteredModel.objects.bulk_create(
        RegisteredModel(workspace=team.workspace, name=f"m{i}", source="local", path="/m") for i in range(30)
    )
    shown = as_researcher.get("/runs/new?recipe=policy").content.decode()
    assert '<datalist id="f-model-name-list">' in shown and "31 to choose from" in shown


def test_many_parts_cost_no_more_queries(as_researcher, team, version, model):
    judge(team)
    scorer(team)
    parts = [{"kind": "rubric", "judge": "Grader v1"}, {"kind": "reward_model", "model": "rm-1"}]

    def asked(count: int) -> int:
        form = RunForm.blank(team.researcher)
        form.raw["rewards"] = [{**part, "name": f"p{i}"} for i in range(count) for part in parts[i % 2 : i % 2 + 1]]
        with CaptureQueriesContext(
            connection,
        ) as caught:
            assert len([each for each in form.group.every_input() if each.source]) > count
        return len(caught)

    asked(2)  # facts about the judge are cached
    assert asked(2) == asked(12)


def test_parts_change_places(team, version, model):
    form = RunForm.blank(team.researcher)
    form.raw["rewards"] = [{"kind": "rubric"}, {"kind": "format"}, {"kind": "overlong"}]

    def after(action: str) -> list[str]:
        return [
            part["kind"]
            for part in RunForm.posted(team.researcher, form_fields(form.group) | {"action": action}).raw["rewards"]
        ]

    assert after("down:rewards.0") == after("up:rewards.1") == ["format", "rubric", "overlong"]
    for nothing in ("up:rewards.0", "down:rewards.2", "up:rewards.9", "up:steps", "down:"):
        assert after(nothing) == ["rubric", "format", "overlong"]


def test_the_expression_is_checked_against_the_parts_whatever_else_is_wrong(team, version, model):
    form = RunForm.blank(team.researcher)
    form.raw |= {"steps": "many", "reward_expression": "rubric * politeness"}
    assert not form.check()
    assert "unknown part “politeness”; known: rubric" in form.problems["reward_expression"]
    assert "steps" in form.problems
    field = next(each for each in form.group.every_input() if each.path == "reward_expression")
    assert field.error and field.names == ("rubric",)


def test_fields_without_effect_are_not_shown_and_keep_their_values(team, version, model):
    form = RunForm.blank(team.researcher)
    form.raw["runner"] = {**form.raw["runner"], "ahead": 3}
    fields = {each.path: each for each in form.group.every_input()}
    assert not fields["runner.ahead"].shown and not fields["runner.policy"].shown and fields["runner.push_every"].shown
    assert RunForm.posted(team.researcher, form_fields(form.group)).raw["runner"]["ahead"] == 3
    form.raw["runner"] |= {"kind": "async"}
    del form.group
    fields = {each.path: each for each in form.group.every_input()}
    assert fields["runner.ahead"].shown and not fields["runner.oversample"].shown


def test_a_problem_shows_even_a_field_without_effect():
    tree = Tree(RECIPES["policy"].schema.model_json_schema())
    group = tree.draw(tree.defaults(), {"runner.ahead": "wrong"})
    fields = {each.path: each for each in group.every_input()}
    assert fields["runner.ahead"].shown and not fields["runner.oversample"].shown


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_what_a_field_depends_on_stands_beside_it(recipe):
    """A condition on a missing field, or on an impossible value, would hide the field for ever."""
    schema = recipe.schema.model_json_schema()
    found = 0
    for section in [schema, *schema["$defs"].values()]:
        for field in section.get("properties", {}).values():
            if needed := field.get("when"):
                other = section["properties"][needed["field"]]
                assert not needed["values"] or set(needed["values"]) <= set(other["enum"])
                found += 1
    assert found


def test_a_folded_section_is_told_in_a_line_and_a_problem_opens_it(as_researcher, team, version, model):
    form = RunForm.blank(team.researcher)
    form.raw["optim"] = {**form.raw["optim"], "lr": 0.5}
    groups = {group.path: group for group in form.group.groups}
    assert groups["optim"].folded and not groups["model"].folded
    assert groups["optim"].brief[0] == ("learning rate 0.5", True) and groups["optim"].changes == 1
    assert ("grpo", False) in groups["objective"].brief
    shown = as_researcher.post("/runs/new", form_fields(form.group, optim__lr="9")).content.decode()
    section = shown.split('id="g-optim"')[1]
    assert section.startswith(" open") and "1 problem" in section.split("</summary>")[0]


def test_an_archived_dataset_is_offered_nowhere_and_kept_where_it_is_named(as_researcher, team, version, model, launch):
    run = launch()
    named = f'value="{version.dataset_id}:1"'
    forms = ("/runs/new", "/runs/new?recipe=policy", "/evaluations/new?recipe=policy")
    assert all(named in as_researcher.get(form).content.decode() for form in forms)
    assert f'value="{version.pk}"' in as_researcher.get("/projects/new?kind=rating").content.decode()
    housekeeping.archive(team.owner, version.dataset, archived=True)
    assert not any(named in as_researcher.get(form).content.decode() for form in forms)
    assert f'value="{version.pk}"' not in as_researcher.get("/projects/new?kind=rating").content.decode()
    again = as_researcher.get(f"/runs/{run.pk}/fork").content.decode()
    assert named in again and "archived" in again


def test_a_model_that_scores_is_trained_further_and_writes_nothing(team, version, model):
    scorer(team)
    judged = (Preference(a="a", b="b", strength=-2, rater="r"),)
    answers = (Response(id="a", text="Red."), Response(id="b", text="Seven."))
    pairs = make_version(team.owner, "pairs", responses=answers, preferences=judged, digest="e" * 64)

    def told(recipe: str, found) -> dict[str, str]:
        form = RunForm.blank(team.researcher, recipe, f"{found.dataset_id}:1")
        form.raw["model"] = {**form.raw["model"], "name": "rm-1"}
        form.check()
        return form.problems

    assert told("reward_model", pairs) == {}
    assert told("dpo", pairs) == {"model.name": "'rm-1' scores texts and cannot write texts"}
    assert "cannot write texts" in told("policy", version)["model.name"]
    assert offered(drawn(team, recipe="reward_model")["model.name"]) == ["rm-1", model.name]


def test_what_is_known_about_a_judge_stands_beside_it(as_researcher, team, version, model):
    cache.clear()
    found = judge(team)
    form = RunForm.blank(team.researcher)
    form.raw["rewards"] = [{"kind": "rubric", "judge": "Grader v1"}]
    shown = as_researcher.post("/runs/new", form_fields(form.group)).content.decode()
    assert "Nobody has compared this judge" in shown and "/evaluations/new?recipe=criterion_audit" in shown
    cell = {"kind": "estimate", "unit": "share", "tags": [], "value": 0.8, "low": 0.7, "high": 0.9, "n": 120}
    Evaluation.objects.create(
        workspace=team.workspace,
        name="Against people",
        recipe="criterion_audit",
        benchmark="b",
        state="finished",
        ended_at=timezone.now(),
        results={
            "entries": [{"name": "Grader v1", "cell": cell, "judge_version": found.pk, "known": {"place": "below"}}]
        },
    )
    cache.clear()
    shown = as_researcher.post("/runs/new", form_fields(form.group)).content.decode()
    panel = shown.split('class="licence"')[1].split("</aside>")[0]
    for words in ("Against people", "80.0", "n 120", "below", "People agree with each other more often"):
        assert words in panel, panel


def test_supervised_runs_name_a_judge_of_their_answers_that_can_decide_criteria(team, model):
    version = make_version(team.owner, name="answered", reference="Yes")
    judge(team), judge(team, "Pairs", "pairwise")
    form = RunForm.blank(team.researcher, "sft")
    form.dataset = f"{version.dataset_id}:{version.number}"
    form.raw["data"] = {"source": "references"}
    form.raw["evaluation"] |= {"generate": True, "judge": "Pairs v1"}
    assert offered({each.path: each for each in form.group.every_input()}["evaluation.judge"]) == ["Grader v1"]
    assert not form.check() and set(form.problems) == {"evaluation.judge"}, form.problems
    form.problems = {}
    form.raw["evaluation"] |= {"judge": "Grader v1"}
    assert form.check(), form.problems
    run = form.launch()
    assert run is not None and [slot.path for slot in run.slots.filter(judge__isnull=False)] == ["evaluation.judge"]
