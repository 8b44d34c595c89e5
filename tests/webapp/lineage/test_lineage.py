"""From an answer to everything that was made with it, and from a run back to the people behind it."""

import re
from dataclasses import replace

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.team import ApiClient, browser
from tests.webapp.annotation.answers import annotators, answer, make_project, preference
from tests.webapp.experiments.conftest import make_version
from webapp.accounts.models import Membership, Role
from webapp.accounts.tokens.services import create_token
from webapp.annotation.agreement import refresh
from webapp.annotation.models import Answer, Project, Publication
from webapp.annotation.publishing import services as publish
from webapp.datasets.models import DatasetVersion
from webapp.evaluation.models import Evaluation
from webapp.evaluation.recipes import RECIPES
from webapp.experiments.models import Artifact, ClaimRun, ClaimStudy, Experiment, Rollout, Run, RunJudge
from webapp.inference.models import Endpoint, RegisteredModel
from webapp.judging.models import Judge, JudgeVersion
from webapp.lineage import edges, traversal
from webapp.lineage.edges import steps
from webapp.lineage.first_steps import by_indexes
from webapp.lineage.kinds import KINDS
from webapp.lineage.traversal import walk
from webapp.reports import services as reports
from webapp.weights.models import WeightsJob

pytestmark = pytest.mark.django_db


class World:
    """Anna and another person compare responses. The published version trains a reward model, the model judges, and the judge rewards a
    policy.
    """

    def __init__(self, team) -> None:
        self.team = team
        self.project = make_project(team, n=3)
        self.people = annotators(team, self.project)
        tasks = list(self.project.tasks.order_by("rank"))
        for person in self.people:
            answer(tasks[0], person, preference(2))
        answer(tasks[1], self.people[1], preference(-1))
        refresh.bring_up_to_date(self.project)
        self.tasks = tasks
        self.publication: Publication = publish.publish(team.researcher, self.project)
        self.version: DatasetVersion = self.publication.version
        self.base = RegisteredModel.objects.create(workspace=team.workspace, name="base", source="hub", path="o/m")
        self.experiment = Experiment.objects.create(workspace=team.workspace, name="e")
        self.trained = self.run("reward_model", self.version)
        self.reward = self.output(self.trained, "reward")
        self.endpoint = Endpoint.objects.create(
            workspace=team.workspace, name="local", kind="local", registered_model=self.reward
        )
        made = Judge.objects.create(workspace=team.workspace, name="j", kind="pointwise")
        self.judge = JudgeVersion.objects.create(judge=made, number=1, spec={}, endpoint=self.endpoint, digest="x")
        self.prompts = make_version(team.owner, name="prompts")
        self.policy = self.run("policy", self.prompts)
        RunJudge.objects.create(run=self.policy, version=self.judge)
        self.model = self.output(self.policy, "policy")
        self.evaluation = self.evaluated({"judges": [{"version": self.judge.pk}]})
        self.study = ClaimStudy.objects.create(workspace=team.workspace, plan="rationale", plan_digest="d")
        ClaimRun.objects.create(study=self.study, run=self.policy, arm="a", seed=0)
        self.rollout = self.sampled(self.policy, self.prompts.members.first().example.key)
        shown = f"```rollout\nrun: {self.policy.pk}\nstep: 2\nprompt: 1\n```"
        self.report = reports.create(team.researcher, "What we saw", shown)

    def run(self, recipe: str, version: DatasetVersion) -> Run:
        number = self.experiment.runs.count() + 1
        return Run.objects.create(
            experiment=self.experiment,
            number=number,
            recipe=recipe,
            config={},
            dataset_version=version,
            model=self.base,
        )

    def sampled(self, run: Run, key: str) -> Rollout:
        place = {"step": 2, "phase": "train", "group": 0, "index": 0}
        return Rollout.objects.create(run=run, example_key=key, reward=0.5, content={}, **place)

    def output(self, run: Run, name: str) -> RegisteredModel:
        made = RegisteredModel.objects.create(
            workspace=self.team.workspace, name=name, source="run", path=name, base=self.base
        )
        Artifact.objects.create(run=run, step=1, role="model", path=name, bytes=1, digest=name, registered=made)
        return made

    def evaluated(self, config: dict, recipe: str = "judge_audit") -> Evaluation:
        return Evaluation.objects.create(
            workspace=self.team.workspace, name="audit", recipe=recipe, config=config, benchmark="b"
        )


@pytest.fixture
def world(team) -> World:
    return World(team)


def test_an_answer_reaches_version_reward_model_judge_policy_and_report(world):
    given = Answer.objects.filter(assignment__task=world.tasks[0]).first()
    found = walk(("answer", given.pk), "down")
    assert found.ids == {
        "publication": {world.publication.pk},
        "version": {world.version.pk},
        "run": {world.trained.pk, world.policy.pk},
        "model": {world.reward.pk, world.model.pk},
        "judge": {world.judge.pk},
        "evaluation": {world.evaluation.pk},
        "study": {world.study.pk},
        "report": {world.report.pk},
    }
    assert found.whole and found.direct == {("publication", world.publication.pk)}


def test_a_policy_rests_on_the_people_and_the_guidelines_behind_its_judge(world):
    found = walk(("run", world.policy.pk), "up")
    assert found.ids["person"] == {each.user_id for each in world.people}
    given = set(Answer.objects.values_list("guidelines_id", flat=True)) - {None}
    assert found.ids.get("guidelines", set()) == given
    assert found.ids["version"] == {world.version.pk, world.project.version_id, world.prompts.pk}
    assert found.ids["judge"] == {world.judge.pk} and found.ids["model"] == {world.base.pk, world.reward.pk}
    assert "study" not in found.ids and ("judge", world.judge.pk) in found.direct


def test_both_ways_tell_the_same(world):
    starts = [("run", world.policy.pk), ("model", world.model.pk), ("evaluation", world.evaluation.pk)]
    starts.append(("report", world.report.pk))
    for start in starts:
        for kind, ids in walk(start, "up").ids.items():
            for pk in ids:
                assert start[1] in walk((kind, pk), "down").ids[start[0]], (kind, pk, start)


def test_the_reward_of_a_rollout_rests_on_its_run_its_prompt_its_judge_and_people(world):
    found = walk(("rollout", world.rollout.pk), "up")
    prompt = world.prompts.members.first().example_id
    assert found.direct == {("run", world.policy.pk), ("example", prompt)}
    assert found.ids["judge"] == {world.judge.pk} and found.ids["model"] == {world.base.pk, world.reward.pk}
    assert found.ids["person"] == {each.user_id for each in world.people}
    assert walk(("rollout", world.rollout.pk), "down").ids == {"report": {world.report.pk}}
    shown = browser(world.team.reviewer).get(f"/lineage/rollout/{world.rollout.pk}").content.decode()
    assert "e: run 2, step 2, prompt 1, response 1" in shown and "Judges" in shown


def test_what_is_withdrawn_counts_the_reports_that_must_be_written_again(world):
    told = ApiClient(world.team.researcher).get(f"/lineage/version/{world.version.pk}").json()
    assert told["again"]["report"] == 1
    shown = browser(world.team.researcher).get(f"/lineage/version/{world.version.pk}").content.decode()
    assert f'href="/reports/{world.report.pk}"' in shown


def test_who_answered_after_the_publication_is_not_behind_it(world):
    late = annotators(world.team, world.project, n=2)[1]
    answer(world.tasks[2], late, preference(3))
    assert late.user_id not in walk(("version", world.version.pk), "up").ids["person"]
    assert walk(("person", late.user_id), "down").ids == {}


def test_a_withdrawn_example_reaches_the_versions_that_hold_it_and_no_others(world):
    example = world.tasks[0].example
    lineage = {"from": "filter", "base": world.version.number, "base_id": world.version.pk}
    without = DatasetVersion.objects.create(
        dataset=world.version.dataset, number=99, state="frozen", digest="w" * 64, lineage=lineage
    )
    found = walk(("example", example.pk), "down")
    assert {world.version.pk, world.project.version_id} == found.ids["version"]
    assert world.policy.pk in found.ids["run"] and found.ids["publication"] == {world.publication.pk}
    assert without.pk in walk(("version", world.version.pk), "down").ids["version"]
    assert world.project.version_id in walk(("example", example.pk), "up").ids.get("version", set())


def test_a_version_that_was_derived_without_the_labels_of_a_person_has_nothing_of_theirs(world):
    """Only the first task has a published label."""

    def derived(number: int, base: DatasetVersion, place: int) -> DatasetVersion:
        lineage = {"from": "filter", "base": base.number, "base_id": base.pk}
        made = DatasetVersion.objects.create(
            dataset=world.version.dataset, number=number, state="frozen", digest=f"{number:064}", lineage=lineage
        )
        kept = world.version.members.get(example__key=world.tasks[place].example.key)
        made.members.create(example_id=kept.example_id, position=0)
        return made

    holds, without = derived(97, world.version, 0), derived(98, world.version, 1)
    again = derived(99, without, 1)
    elsewhere = make_version(world.team.owner, name="copied")
    DatasetVersion.objects.filter(pk=elsewhere.pk).update(lineage={"version_id": holds.pk})
    trained = [world.run("reward_model", each).pk for each in (holds, elsewhere, without, again)]
    given = Answer.objects.filter(assignment__task=world.tasks[0]).first()
    for start in (("person", world.people[0].user_id), ("answer", given.pk), ("guidelines", given.guidelines_id)):
        found = walk(start, "down")
        assert found.ids["version"] == {world.version.pk, holds.pk, elsewhere.pk}, start
        assert found.ids["run"] & set(trained) == set(trained[:2]), start
    assert again.pk in walk(("version", world.version.pk), "down").ids["version"]


def test_an_answer_reaches_the_evaluations_that_read_its_project(world):
    late = annotators(world.team, world.project, n=2)[1]
    reads = world.evaluated({"grading": world.project.pk}, recipe="grade_or_compare")
    assert walk(("person", late.user_id), "down").ids == {}
    given = answer(world.tasks[2], late, preference(3))
    for start in (("person", late.user_id), ("answer", given.pk)):
        found = walk(start, "down")
        assert found.ids == {"evaluation": {reads.pk}} and not found.direct
    assert reads.pk in walk(("person", world.people[0].user_id), "down").ids["evaluation"]


def test_a_label_is_carried_into_the_next_projects_publication(world):
    Project.objects.filter(pk=world.project.pk).update(name="first")
    project = make_project(world.team, n=1)
    kept = world.version.members.get(example__key=world.tasks[2].example.key)
    Project.objects.filter(pk=project.pk).update(version=world.version)
    project = Project.objects.get(pk=project.pk)
    project.tasks.filter(rank=0).update(example=kept.example_id)
    for _ in range(2):
        answer(project.tasks.get(rank=0), annotators(world.team, project, n=2)[1], preference(1))
    refresh.bring_up_to_date(project)
    made = publish.publish(world.team.researcher, project)
    found = walk(("person", world.people[0].user_id), "down")
    assert found.ids["version"] == {world.version.pk, made.version_id}
    assert found.ids["publication"] == {world.publication.pk, made.pk} and found.ids["project"] == {project.pk}
    assert found.direct == {("publication", world.publication.pk)}


def test_every_field_of_an_evaluation_that_names_a_row_is_followed(world):
    known = {"judges": edges.JUDGES, "models": edges.MODELS, "runs": edges.RUNS}
    known |= {"projects": edges.PROJECTS, "studies": edges.PROJECTS}
    missing = []
    for recipe in RECIPES.values():
        schema = recipe.schema.model_json_schema()
        for path, source in _sources(schema, schema.get("$defs", {})):
            kind = source.partition(":")[0]
            if kind in known and path not in known[kind]:
                missing.append((recipe.name, path, source))
    assert not missing


def _sources(schema, defs, path=""):
    if "$ref" in schema:
        schema = {**defs[schema["$ref"].rsplit("/", 1)[-1]], **schema}
    if "source" in schema:
        yield path, schema["source"]
    for each in [*schema.get("anyOf", ()), *schema.get("allOf", ())]:
        yield from _sources(each, defs, path)
    if "items" in schema:
        yield from _sources(schema["items"], defs, f"{path}[*]")
    for name, each in schema.get("properties", {}).items():
        yield from _sources(each, defs, f"{path}.{name}" if path else name)


@pytest.mark.parametrize("path", edges.JUDGES)
def test_a_judge_is_found_wherever_an_evaluation_names_it(world, path):
    made = world.evaluated({"judges": [{"version": world.judge.pk}]} if "." in path else {path: world.judge.pk})
    assert made.pk in walk(("judge", world.judge.pk), "down").ids["evaluation"]
    assert world.judge.pk in walk(("evaluation", made.pk), "up").ids["judge"]


def test_a_walk_ends_at_its_bound_and_says_so(world):
    found = walk(("version", world.version.pk), "down", most=3)
    assert not found.whole and sum(found.counts.values()) <= 4
    answered = ApiClient(world.team.reviewer).get(f"/lineage/version/{world.version.pk}").json()
    assert answered["whole"] is True


def test_the_api_counts_lists_by_pages_and_says_what_to_make_again(world):
    client = ApiClient(world.team.researcher)
    told = client.get(f"/lineage/person/{world.people[0].user_id}").json()
    assert told["counts"]["run"] == 2 and told["again"] == told["counts"]
    assert told["start"]["name"] == "Anna" and told["people_named"] is True
    first = client.get(f"/lineage/version/{world.version.pk}/rows?of=run&limit=1").json()
    second = client.get(f"/lineage/version/{world.version.pk}/rows?of=run&limit=1&cursor={first['next']}").json()
    assert [first["items"][0]["id"], second["items"][0]["id"]] == [world.policy.pk, world.trained.pk]
    assert second["items"][0]["direct"] and not first["items"][0]["direct"] and second["next"] is None
    assert client.get(f"/lineage/version/{world.version.pk}/rows?of=nothing").status_code == 422
    assert client.get(f"/lineage/nothing/{world.version.pk}").status_code == 422


def test_people_are_counted_and_not_named_for_reviewers(world):
    client, address = ApiClient(world.team.reviewer), f"/lineage/run/{world.policy.pk}"
    told = client.get(f"{address}?way=up").json()
    assert told["counts"]["person"] == 2 and told["people_named"] is False
    assert client.get(f"{address}/rows?way=up&of=person").json()["items"] == []
    assert client.get(f"/lineage/person/{world.people[0].user_id}").status_code == 404
    shown = browser(world.team.reviewer).get(f"/lineage/run/{world.policy.pk}").content.decode()
    assert "Person 2" not in shown and "under pseudonyms" in shown
    shown = browser(world.team.researcher).get(f"/lineage/run/{world.policy.pk}").content.decode()
    assert "Person 2" in shown


def test_a_token_for_runs_alone_names_nobody(world):
    _, secret = create_token(world.team.owner, "runs", rights={"experiments": "read"})
    client, address = Client(headers={"authorization": f"Bearer {secret}"}), f"/api/v1/lineage/run/{world.policy.pk}"
    told = client.get(f"{address}?way=up").json()
    assert told["counts"]["person"] == 2 and told["people_named"] is False
    assert client.get(f"{address}/rows?way=up&of=person").json()["items"] == []
    assert client.get(f"/api/v1/lineage/person/{world.people[0].user_id}").status_code == 404


def test_others_find_nothing(world):
    for kind, pk in (("run", world.policy.pk), ("person", world.people[0].user_id), ("version", world.version.pk)):
        assert ApiClient(world.team.outsider).get(f"/lineage/{kind}/{pk}").status_code == 404
        assert browser(world.team.outsider).get(f"/lineage/{kind}/{pk}").status_code == 404
    assert ApiClient(world.team.annotator).get(f"/lineage/run/{world.policy.pk}").status_code == 403
    assert browser(world.team.annotator).get(f"/lineage/run/{world.policy.pk}").status_code == 403


def test_of_who_annotates_in_two_workspaces_each_counts_its_own(world):
    person, theirs = world.people[0].user, world.team.outsider
    before = ApiClient(world.team.researcher).get(f"/lineage/person/{person.pk}").json()
    member = Membership.objects.create(user=person, workspace=theirs.workspace, role=Role.ANNOTATOR)
    there = replace(world.team, workspace=theirs.workspace, owner=theirs, researcher=theirs, annotator=member)
    elsewhere = make_project(there, n=1)
    for one in annotators(there, elsewhere):
        answer(elsewhere.tasks.get(), one, preference(1))
    refresh.bring_up_to_date(elsewhere)
    publish.publish(theirs, elsewhere)
    assert ApiClient(world.team.researcher).get(f"/lineage/person/{person.pk}").json() == before
    assert ApiClient(theirs).get(f"/lineage/person/{person.pk}").json()["counts"] == {"publication": 1, "version": 1}


def test_the_page_asks_as_much_for_many_rows_as_for_few(world):
    page, address = browser(world.team.researcher), f"/lineage/version/{world.version.pk}"

    def asked() -> int:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert page.get(address).status_code == 200
        return len(queries)

    page.get(address)
    few = asked()
    for number in range(20):
        self_made = world.output(world.run("policy", world.version), f"m{number}")
        world.evaluated({"judges": [{"version": world.judge.pk}]})
        assert self_made.pk
    assert asked() == few
    shown = page.get(address).content.decode()
    assert "If this dataset version were withdrawn" in shown and "All 22" in shown
    more = page.get(f"{address}?way=down&of=run").content.decode()
    assert more.count("Show its lineage: ") == 22


def test_every_kind_of_row_is_a_start(world):
    given = Answer.objects.select_related("assignment").first()
    assert given is not None
    guidelines = world.project.guidelines.create(number=7)
    job = WeightsJob.objects.create(workspace=world.team.workspace, kind="generate", title="t", key="k")
    starts = {"person": given.assignment.user_id, "answer": given.pk, "example": world.tasks[0].example_id}
    starts |= {"project": world.project.pk, "publication": world.publication.pk, "version": world.version.pk}
    starts |= {"judge": world.judge.pk, "job": job.pk, "run": world.policy.pk, "model": world.model.pk}
    starts |= {"rollout": world.rollout.pk, "report": world.report.pk}
    starts |= {"evaluation": world.evaluation.pk, "study": world.study.pk, "guidelines": guidelines.pk}
    page = browser(world.team.owner)
    assert set(starts) == set(KINDS)
    for kind, pk in starts.items():
        for way in ("down", "up"):
            assert page.get(f"/lineage/{kind}/{pk}?way={way}").status_code == 200, (kind, way)


def test_the_page_of_a_row_from_which_nothing_was_made_shows_its_origin(world, team):
    lineage = {"from": "filter", "base": world.version.number, "base_id": world.version.pk}
    fresh = DatasetVersion.objects.create(
        dataset=world.version.dataset, number=99, state="frozen", digest="f" * 64, lineage=lineage
    )
    page = browser(team.reviewer)
    shown = page.get(f"/lineage/version/{fresh.pk}").content.decode()
    assert "Nothing was made from it yet" not in shown
    assert f'href="/lineage/version/{world.version.pk}?way=up"' in shown
    assert "Nothing was made from it yet" in page.get(f"/lineage/version/{fresh.pk}?way=down").content.decode()


def test_the_page_says_where_nothing_is_known(world, team):
    page = browser(team.reviewer)
    assert "It is based on nothing here" in page.get(f"/lineage/version/{world.prompts.pk}?way=up").content.decode()
    assert (
        "Nothing was made from it yet"
        in page.get(f"/lineage/evaluation/{world.evaluation.pk}?way=down").content.decode()
    )
    assert page.get(f"/lineage/run/{world.policy.pk}?way=sideways").status_code == 404
    assert page.get(f"/lineage/run/{world.policy.pk}?of=model&cursor=x").status_code == 404
    assert Membership.objects.filter(workspace=team.workspace).count() >= 4


def test_a_walk_reads_no_table_whole_for_each_row_on_the_way(team):
    """The planner would read a small table completely. It does the same with a large one if most of its rows have the same model."""
    RegisteredModel.objects.create(workspace=team.workspace, name="m", source="local", path="/m")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE inference_registeredmodel")
    with by_indexes() as cursor:
        cursor.execute(f"EXPLAIN {traversal._WALK.format(steps=steps('down'))}", [["model"], [1], 10])
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "Seq Scan on inference_registeredmodel " not in plan
    with connection.cursor() as cursor:
        cursor.execute("SHOW enable_seqscan")
        assert cursor.fetchone() == ("on",)


def test_the_page_of_a_judge_lists_the_evaluations_that_name_a_version_of_it(world, team):
    measured = world.evaluated({"judges": [{"version": world.judge.pk}]})
    graded = world.evaluated({"rubric_judge": world.judge.pk}, recipe="policies")
    another = world.evaluated({"judges": [{"version": world.judge.pk + 1000}]})
    page = browser(team.researcher)
    address = f"/judges/{world.judge.judge_id}/evaluations"
    shown = page.get(f"/judges/{world.judge.judge_id}").content.decode()
    assert f'hx-get="{address}"' in shown and f'href="/lineage/judge/{world.judge.pk}?way=down"' in shown
    listed = [int(pk) for pk in re.findall(r'data-href="/evaluations/(\d+)"', page.get(address).content.decode())]
    assert listed[:2] == [graded.pk, measured.pk] and another.pk not in listed
    assert browser(team.outsider).get(address).status_code == 404


def test_rows_with_the_same_name_have_their_numbers(world, team):
    twins = [world.evaluated({"judges": [{"version": world.judge.pk}]}) for _ in range(2)]
    page = browser(team.researcher)
    shown = page.get(f"/lineage/judge/{world.judge.pk}?way=down").content.decode()
    assert all(f"evaluation {twin.pk}<" in shown for twin in twins) and f"model {world.reward.pk}<" not in shown
