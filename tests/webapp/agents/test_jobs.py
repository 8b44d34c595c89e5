"""Jobs that an agent does through MCP's official client: each is a script of calls of tools, as a model would make them."""

import json
import re
from pathlib import Path

import pytest
from django.utils import timezone
from jsonschema import Draft202012Validator

from tests.webapp.annotation.answers import annotators, answer, make_project, preference
from tests.webapp.evaluation.conftest import as_file, lines
from tests.webapp.experiments.outputs.test_outputs import output
from webapp.agents.operations import TOOLS
from webapp.annotation.agreement import refresh
from webapp.core.models import AuditEntry
from webapp.datasets.ingest import services as imports
from webapp.evaluation.recordings import services as recordings
from webapp.evaluation.work import running
from webapp.experiments.models import Run
from webapp.experiments.sweeps import rounds
from webapp.inference.models import Endpoint
from webapp.judging.judges.services import create_judge

from .test_protocol import PLAIN

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
PAIRS = [{"prompt": f"Name colour {n}.", "chosen": f"Red {n}.", "rejected": "I do not know."} for n in range(12)]
CHECKPOINT = {"role": "checkpoint", "path": "checkpoints/4", "bytes": 100, "digest": "c" * 64}


def rows(found: list[dict]) -> str:
    return "\n".join(json.dumps(each) for each in found)


def queued_import(agent, name: str, content: str, **form) -> dict:
    """The import of a text as a file, which waits for a worker."""
    job = agent.do("import_dataset", body={"name": name, "file": {"name": f"{name}.jsonl", "content": content}, **form})
    assert job["state"] == "queued"
    return job


def imported(agent, name: str, content: str, **form) -> dict:
    """Imports a text as a file, and follows the import to its end."""
    job = queued_import(agent, name, content, **form)
    imports.run_import(job["id"])  # the work of a worker
    return agent.do("get_import", job_id=job["id"])


@pytest.fixture
def project(team):
    """Two people compared four pairs. They agree on three, and choose opposite sides on the last."""
    made = make_project(team)
    one, two = annotators(team, made)
    for task, (first, second) in zip(made.tasks.order_by("rank"), [(2, 2), (1, 1), (2, 1), (-3, 3)], strict=True):
        answer(task, one, preference(first))
        answer(task, two, preference(second))
    refresh.bring_up_to_date(made)
    return made


@pytest.fixture
def recording(team):
    return recordings.store_recording(team.researcher, "verdicts.jsonl", as_file(lines()))


def test_it_finds_out_who_it_is_and_learns_every_tool(agent):
    assert agent.session == {"version": "2025-11-25", "server": "touchstone"}
    assert agent.do("who_am_i")["role"] == "researcher"
    found = agent.tools()
    assert list(found) == list(TOOLS)
    for each in found.values():
        Draft202012Validator.check_schema(each["inputSchema"])
        assert each["description"] and each["inputSchema"]["type"] == "object"
    hints = {name: each["annotations"] for name, each in found.items()}
    assert hints["check_config"]["readOnlyHint"] and hints["get_run"]["readOnlyHint"]
    assert hints["stop_sweep"]["destructiveHint"] and not hints["launch_run"]["destructiveHint"]


def test_it_imports_checks_launches_follows_compares_and_registers(agent, team, model, process):
    job = imported(agent, "colours", rows(PAIRS), heldout_share=0.25)
    assert (job["state"], job["counts"]["examples"]) == ("finished", 12), job
    (dataset,) = agent.do("list_datasets")["items"]
    fits = {each["recipe"]: each["fits"] for each in agent.do("dataset_fit", dataset=str(dataset["id"]))["items"]}
    assert fits["dpo"] and not fits["policy"]
    wrong = agent.refusal("check_config", name="dpo", body={"config": {"steps": 0}, "dataset": dataset["id"]})
    assert [field["path"] for field in wrong["fields"]] == ["steps"]
    checked = agent.do("check_config", name="dpo", body={"config": {"steps": 4}, "dataset": dataset["id"]})
    wish = {"recipe": "dpo", "dataset": dataset["id"], "config": checked["config"], "name": "slow"}
    launched = [
        agent.do("launch_run", body=wish),
        agent.do("launch_run", body={**wish, "name": "fast", "config": {"steps": 4, "optim": {"lr": 1e-3}}}),
    ]
    for place, each in enumerate(launched):
        trains = process(Run.objects.get(pk=each["id"]))
        for step in range(1, 5):
            values = {"loss": 1.0 / step + place, "eval/accuracy": 0.5 + 0.1 * place}
            trains.post(trains.event("metrics", step, values=values))
        trains.post(output(trains), trains.event("state", 4, state="finished", summary={}))
    slow, fast = (agent.do("get_run", run_id=each["id"]) for each in launched)
    assert (slow["state"], fast["state"]) == ("finished", "finished")
    curve = agent.do("run_metric", run_id=fast["id"], key="loss")["points"]
    assert [point["value"] for point in curve] == [2.0, 1.5, pytest.approx(4 / 3), 1.25]
    both = agent.do("compare_runs", ids=f"{slow['id']},{fast['id']}")
    assert "optim.lr" in json.dumps(both)
    (made,) = fast["outputs"]
    agent.do("point_alias", name="best-colours", body={"model": made["id"], "reason": "learns faster"})
    assert agent.do("list_aliases")["items"][0]["model"]["name"] == made["name"]
    assert agent.do("get_model", model_id=made["id"])["name"] == made["name"]
    up = agent.do("lineage", what="model", what_id=made["id"], way="up")
    assert up["counts"]["run"] == 1


def test_it_learns_from_a_refused_import_which_line_is_wrong(agent):
    job = imported(agent, "broken", rows(PAIRS[:2]) + "\nno json\n", format="trl_preference")
    assert job["state"] == "failed" and job["rejected"][0]["line"] == 3


def test_it_reads_examples_and_their_versions(agent, version):
    assert agent.do("get_dataset", dataset_id=version.dataset_id)["name"] == "demo"
    assert [each["number"] for each in agent.do("dataset_versions", dataset_id=version.dataset_id)["items"]] == [1]
    found = agent.do("dataset_examples", dataset_id=version.dataset_id, number=1, split="heldout", limit=1)
    assert len(found["items"]) == 1 and found["next"]
    rest = agent.do("dataset_examples", dataset_id=version.dataset_id, number=1, split="heldout", cursor=found["next"])
    assert len(rest["items"]) == 1 and rest["next"] is None


def test_it_corrects_a_config_by_the_fields_that_were_refused(agent, version, model):
    refused = agent.refusal("check_config", name="policy", body={"config": {"steps": -1, "nonsense": 2}})
    assert {field["path"] for field in refused["fields"]} == {"steps", "nonsense"}
    assert "steps" in agent.do("recipe_schema", name="policy")["properties"]
    config = agent.do("check_config", name="policy", body={"config": {"steps": 3}, "dataset": version.dataset_id})
    assert config["config"]["steps"] == 3 and config["leaks"] == []


def test_it_launches_once_although_it_asks_twice(agent, version, model):
    wish = {"recipe": "policy", "dataset": version.dataset_id, "config": {"steps": 4}}
    first = agent.do("launch_run", body=wish, idempotency_key="one")
    assert agent.do("launch_run", body=wish, idempotency_key="one")["id"] == first["id"]
    other = agent.refusal("launch_run", body={**wish, "config": {"steps": 5}}, idempotency_key="one")
    assert other["code"] == "key_reused" and Run.objects.count() == 1


def test_it_follows_a_run_by_its_curves_and_its_log(agent, launch, process):
    run = launch()
    trains = process(run)
    trains.post(trains.event("log", 1, level="info", message="The weights are loaded."))
    for step in (1, 2, 3):
        trains.post(trains.event("metrics", step, values={"reward/mean": step / 10}))
    assert agent.do("get_run", run_id=run.pk)["progress"]["step"] == 3
    curves = agent.do("run_curves", run_id=run.pk, keys="reward/mean")["curves"]
    assert curves["reward/mean"]["values"] == [0.1, 0.2, 0.3]
    assert "The weights are loaded." in json.dumps(agent.do("run_log", run_id=run.pk))
    states = [each["state"] for each in agent.do("run_history", run_id=run.pk)["items"]]
    assert "running" in states
    for tool in ("run_alarms", "run_rollouts", "run_judges"):
        assert agent.do(tool, run_id=run.pk)["items"] == [], tool
    assert "reward/mean" in json.dumps(agent.do("recipe_metrics", name="policy"))


def test_it_pauses_a_run_and_resumes_it(agent, launch):
    run = launch()
    assert agent.do("pause_run", run_id=run.pk)["state"] == "paused"
    assert agent.do("resume_run", run_id=run.pk)["state"] == "queued"


def test_it_cancels_an_import_that_it_did_not_mean(agent):
    job = queued_import(agent, "colours", rows(PAIRS))
    assert agent.do("cancel_import", job_id=job["id"])["state"] == "cancelled"
    assert agent.do("list_datasets")["items"] == []


def test_it_sets_an_early_stop_and_takes_it_away(agent, launch):
    run, rule = launch(), {"metric": "eval/rubric_score", "patience": 5}
    told = agent.do("stop_early", run_id=run.pk, body={"stop_early": rule})
    assert told["stop_early"]["patience"] == 5
    wrong = agent.refusal("stop_early", run_id=run.pk, body={"stop_early": {**rule, "metric": "nothing"}})
    assert [field["path"] for field in wrong["fields"]] == ["metric"]
    assert agent.do("stop_early", run_id=run.pk, body={"stop_early": None})["stop_early"] is None


def test_it_stops_a_run_and_the_history_names_its_person(agent, launch):
    run = launch()
    assert agent.do("stop_run", run_id=run.pk)["state"] == "stopped"
    assert "Rosa" in json.dumps(agent.do("run_history", run_id=run.pk))


def test_it_forks_a_run_with_one_change_and_sees_the_change(agent, launch):
    run = launch()
    forked = agent.do("fork_run", run_id=run.pk, body={"config": {"optim": {"lr": 0.5}}})
    told = agent.do("compare_runs", ids=f"{run.pk},{forked['id']}")
    assert "optim.lr" in json.dumps(told["config"])


def test_it_extends_a_finished_run_that_has_a_checkpoint(agent, launch, process, settings, tmp_path):
    settings.VAR = tmp_path
    run = launch()
    trains = process(run)
    trains.post(trains.event("artifact", 4, **CHECKPOINT), trains.event("state", 4, state="finished", summary={}))
    assert agent.refusal("extend_run", run_id=run.pk, body={"steps": 8})["code"] == "no_checkpoint"
    (tmp_path / "runs" / str(run.pk) / "checkpoints" / "4").mkdir(parents=True)
    agent.do("extend_run", run_id=run.pk, body={"steps": 8})
    assert agent.do("get_run", run_id=run.pk)["progress"]["steps_total"] == 8


def test_it_labels_a_run_and_finds_it_by_the_label(agent, launch):
    launch()
    kept = launch()
    agent.do("label_run", run_id=kept.pk, body={"tags": ["ablation"], "notes": "Best so far."})
    assert [each["run"]["id"] for each in agent.do("find_runs", q="tag:ablation")["items"]] == [kept.pk]
    assert agent.refusal("find_runs", q="steps >")["code"] == "invalid"


def test_it_makes_a_model_of_a_checkpoint(agent, launch, process, settings, tmp_path):
    settings.VAR = tmp_path
    run = launch()
    trains = process(run)
    trains.post(trains.event("artifact", 4, **CHECKPOINT))
    (kept,) = agent.do("run_artifacts", run_id=run.pk)["items"]
    assert agent.refusal("register_checkpoint", run_id=run.pk, artifact_id=kept["id"])["code"] == "gone"
    (tmp_path / "runs" / str(run.pk) / "checkpoints" / "4").mkdir(parents=True)
    (kept,) = agent.do("run_artifacts", run_id=run.pk)["items"]
    job = agent.do("register_checkpoint", run_id=run.pk, artifact_id=kept["id"])
    assert kept["present"] and agent.do("get_job", job_id=job["id"])["state"] == "queued"


def test_it_starts_a_sweep_watches_it_stops_it_and_goes_on(agent, version, model):
    axes = [{"path": "optim.lr", "values": [1e-4, 3e-4, 1e-3]}]
    wish = {"recipe": "policy", "dataset": version.dataset_id, "config": {"steps": 4}, "axes": axes}
    row = agent.do("start_sweep", body={**wish, "method": "grid", "seeds": 1, "at_once": 2}, idempotency_key="s1")
    rounds.advance(row["id"])  # the work of a worker
    assert len(agent.do("sweep_trials", sweep_id=row["id"])["items"]) == 2 == Run.objects.count()
    agent.do("stop_sweep", sweep_id=row["id"])
    rounds.advance(row["id"])
    assert agent.do("get_sweep", sweep_id=row["id"])["state"] == "stopped"
    assert agent.do("resume_sweep", sweep_id=row["id"])["state"] == "running"
    rounds.advance(row["id"])
    assert len(agent.do("sweep_trials", sweep_id=row["id"])["items"]) == 3
    assert [each["id"] for each in agent.do("list_sweeps")["items"]] == [row["id"]]


def test_it_reads_the_progress_of_a_project(agent, project):
    assert [each["name"] for each in agent.do("list_projects")["items"]] == [project.name]
    told = agent.do("project_progress", project_id=project.pk)
    assert agent.do("get_project", project_id=project.pk)["kind"] == "pairwise" and told


def test_it_reads_on_which_tasks_people_disagree(agent, project):
    fields = {each["key"]: each for each in agent.do("project_agreement", project_id=project.pk)["report"]["fields"]}
    assert fields["direction"]["percent"]["value"] == 0.75
    worst = agent.do("project_disagreements", project_id=project.pk, limit=1)["items"]
    assert worst[0]["agreement"] < 0.5


def test_it_publishes_answers_and_trains_on_them(agent, project, model):
    made = agent.do("publish_answers", project_id=project.pk, body={"what": "answers"})
    versions = agent.do("dataset_versions", dataset_id=made["dataset"])["items"]
    assert versions[0]["number"] == made["version"] and made["counts"]["preferences"] > 0
    config = {"steps": 2, "evaluation": {"max_examples": 0}}
    wish = {"recipe": "dpo", "dataset": made["dataset"], "config": config}
    assert agent.do("launch_run", body=wish)["state"] == "queued"


def test_it_starts_an_evaluation_and_reads_its_numbers(agent, recording):
    names = [each["name"] for each in agent.do("evaluation_recipes")["items"]]
    assert "judge_audit" in names and agent.do("evaluation_schema", name="judge_audit")
    row = agent.do("start_evaluation", body={"recipe": "judge_audit", "recording": recording.pk, "name": "Audit"})
    running.run(row["id"])  # the work of a worker
    assert agent.do("get_evaluation", evaluation_id=row["id"])["headline"]["cell"]["value"] == 1.0
    assert agent.do("evaluation_results", evaluation_id=row["id"])
    cases = agent.do("evaluation_cases", evaluation_id=row["id"], tag=["judge:hasty", "wrong"], limit=1)
    assert [case["subject"]["pair"] for case in cases["items"]] == ["p0"]


def test_it_finds_a_judge_and_its_versions(agent, team):
    endpoint = Endpoint.objects.create(workspace=team.workspace, name="replayed", kind="recorded")
    made = create_judge(team.researcher, name="Colours", spec={"kind": "pairwise"}, endpoint=endpoint)
    assert [each["name"] for each in agent.do("list_judges")["items"]] == ["Colours"]
    assert agent.do("get_judge", judge_id=made.judge_id)["name"] == "Colours"


def test_it_cancels_an_evaluation(agent, recording):
    row = agent.do("start_evaluation", body={"recipe": "judge_audit", "recording": recording.pk})
    assert agent.do("cancel_evaluation", evaluation_id=row["id"])["state"] == "cancelled"


def test_it_reads_a_leaderboard(agent, recording):
    row = agent.do("start_evaluation", body={"recipe": "judge_audit", "recording": recording.pk})
    running.run(row["id"])
    boards = agent.do("list_leaderboards")["items"]
    assert boards and agent.do("get_leaderboard", benchmark=boards[0]["benchmark"])["rows"]


def test_it_reads_what_a_run_has_cost(agent, launch, process):
    run = launch()
    trains = process(run)
    trains.post(trains.event("state", 4, state="finished", summary={}))
    (cost,) = agent.do("costs", by="run")["items"]
    assert (cost["kind"], cost["id"]) == ("run", run.pk) and cost["hours"]["value"] is not None


def test_it_follows_the_lineage_of_a_dataset_to_its_runs(agent, version, launch):
    run = launch()
    down = agent.do("lineage", what="version", what_id=version.pk, way="down")
    assert down["counts"]["run"] == 1 and run.pk


def test_it_reads_what_needs_somebody_and_sees_to_it(agent, launch):
    run = launch()
    Run.objects.filter(pk=run.pk).update(state="failed", state_reason="The disk is full.", ended_at=timezone.now())
    needs = agent.do("needs")
    assert "The disk is full." in json.dumps(needs)
    agent.do("resume_run", run_id=run.pk)
    assert "The disk is full." not in json.dumps(agent.do("needs"))


def test_a_reviewer_reads_and_starts_nothing(connect, team, launch):
    run = launch()
    reader = connect(team.reviewer)
    assert reader.do("get_run", run_id=run.pk)["id"] == run.pk
    for tool, arguments in (("stop_run", {"run_id": run.pk}), ("fork_run", {"run_id": run.pk, "body": {}})):
        assert reader.refusal(tool, **arguments)["code"] == "forbidden"


def test_a_token_for_some_areas_has_only_their_tools(connect, team, launch):
    run = launch()
    reader = connect(team.researcher, experiments="read")
    found = reader.tools()
    assert "get_run" in found and "check_config" not in found and "list_datasets" not in found
    assert reader.do("get_run", run_id=run.pk)["id"] == run.pk
    for tool, given, needed in (
        ("stop_run", {"run_id": run.pk}, "experiments:write"),
        ("list_datasets", {}, "datasets:read"),
    ):
        assert reader.call(tool, **given)[1]["needed"] == needed


def test_it_sees_nothing_of_another_workspace(connect, team, launch, version):
    run = launch()
    stranger = connect(team.outsider)
    assert stranger.do("list_runs")["items"] == [] == stranger.do("list_datasets")["items"]
    assert stranger.refusal("get_run", run_id=run.pk)["code"] == "not_found"
    assert stranger.refusal("lineage", what="version", what_id=version.pk)["code"] == "not_found"


def test_it_reads_how_to_call_a_tool_after_a_wrong_call(agent, launch):
    run = launch()
    assert "'run_id'" in agent.refusal("get_run")["message"]
    assert "'run'" in agent.refusal("get_run", run=run.pk)["message"]
    assert agent.refusal("get_run", run_id="the last one")["fields"][0]["path"] == "run_id"
    assert agent.do("get_run", run_id=run.pk)["id"] == run.pk


def test_all_that_it_changes_is_in_the_audit_log_under_its_token(agent, launch):
    first, second = launch(), launch()
    agent.do("stop_run", run_id=first.pk)
    agent.do("label_run", run_id=second.pk, body={"tags": ["kept"]})
    agent.do("get_run", run_id=first.pk)
    entries = AuditEntry.objects.exclude(token="")
    assert {each.actor.email for each in entries} == {"rosa@example.org"}
    assert {each.action for each in entries} >= {"run.stopped"}


def test_a_wrong_token_connects_to_nothing(official, server):
    assert "Send an API token" in official.say(connect=f"{server.url}/mcp", token="ts_wrong")["refused"]


def test_every_tool_is_part_of_a_job():
    called = set(re.findall(r'"(\w+)"', Path(__file__).read_text()))
    assert set(TOOLS) <= called | set(PLAIN)
