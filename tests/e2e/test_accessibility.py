"""Every page is checked with axe-core, light and dark. Its layout fits the window, and it can be used without a mouse."""

import re
from datetime import time
from pathlib import Path
from typing import Any
from weakref import WeakSet

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from tests.e2e.look import layout_faults
from tests.e2e.seed import seed_run
from tests.trainer.judges.inputs import INPUT
from tests.webapp.annotation.conftest import make_version as make_pairs
from tests.webapp.experiments.conftest import make_version
from tests.webapp.experiments.people.test_people import give_rubrics
from tests.webapp.experiments.people.test_people import judged_response as graded
from trainer.contracts import Example, Preference, Reason, Response
from webapp.accounts.models import User
from webapp.accounts.tokens.services import create_token
from webapp.annotation.projects import gold_services, task_services
from webapp.annotation.projects import services as projects
from webapp.annotation.work import queue, suggestions
from webapp.datasets import probe_services
from webapp.datasets.models import Dataset, ImportJob
from webapp.datasets.probe_services import MeasuredProbe
from webapp.datasets.versions.services import new_version as new_dataset_version
from webapp.experiments.claims import services as claims
from webapp.experiments.launch import checks, drafts
from webapp.experiments.launch import services as launch
from webapp.experiments.repeats import services as repeats
from webapp.experiments.repeats.rhythm import Rhythm
from webapp.experiments.sweeps import rounds
from webapp.experiments.sweeps import services as sweeps
from webapp.experiments.sweeps.checking import Wish
from webapp.inference.endpoints.services import create_endpoint
from webapp.inference.models import RegisteredModel
from webapp.judging.asking.calls import judge_calls
from webapp.judging.judges.services import create_judge, new_version
from webapp.reports import services as reports

pytestmark = pytest.mark.browser
AXE = Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js"
STATIC = Path(__file__).parents[2] / "webapp" / "static"
PAGES = (
    "/",
    "/experiments",
    "/runs/{run}",
    "/runs/{run}/rollouts",
    "/runs/{run}/rollouts/dataset",
    "/runs/{run}/rollouts/annotate?step=30&group=0",
    "/runs/{run}/rollouts/{episode}/episode",
    "/runs/{run}/prompt?key=demo-000",
    "/runs/{run}/log",
    "/runs/{run}/config",
    "/runs/{run}/lineage",
    "/runs/{run}/history",
    "/reports",
    "/reports/new?ids={run}",
    "/reports/{report}",
    "/reports/{report}/edit",
    "/reports/{report}/versions",
    "/reports/{report}/share",
    "/lineage/run/{run}",
    "/lineage/report/{report}",
    "/lineage/run/{run}/graph",
    "/settings/retention?days=30",
    "/costs?by=run",
    "/lineage/example/{example}",
    "/runs/{run}/chain",
    "/runs/{run}/chain/0/policy",
    "/runs/{run}/fork",
    "/runs/{draft}",
    "/runs/{draft}/edit",
    "/experiments/line",
    "/experiments/repeats?run={run}",
    "/experiments/sweeps",
    "/experiments/sweeps/{sweep}",
    "/runs/{run}/sweep",
    "/experiments/claims",
    "/experiments/claims/rationale/new",
    "/experiments/claims/{study}",
    "/experiments/claims/{making}",
    "/runs/new",
    "/runs/new?recipe=policy",
    "/datasets",
    "/datasets/{dataset}",
    "/datasets/{dataset}?rubric=yes",
    "/datasets/{dataset}/versions",
    "/datasets/{dataset}/versions/1/diff",
    "/datasets/{dataset}/versions/1/derive?rubric=yes&remove=1",
    "/datasets/{dataset}/versions/1/curate",
    "/datasets/{dataset}/versions/1/pass-rates",
    "/datasets/{measured}/versions/1/pass-rates",
    "/datasets/{dataset}/versions/1/export",
    "/datasets/import",
    "/imports/{refused}",
    "/curations/{found}",
    "/examples/{example}",
    "/projects",
    "/projects/new",
    "/projects/{project}",
    "/projects/{project}/tasks",
    "/projects/{project}/tasks/{task}",
    "/projects/{project}/people",
    "/projects/{project}/guidelines",
    "/projects/{project}/guidelines?edit",
    "/projects/{project}/settings",
    "/projects/{project}/gold",
    "/projects/{project}/suggestions",
    "/projects/{project}/agreement",
    "/projects/{project}/review",
    "/projects/{project}/review/{task}",
    "/projects/{project}/answers",
    "/projects/{project}/then",
    "/models",
    "/models/new",
    "/models/{model}",
    "/models/{model}/promote",
    "/models/{model}/stage",
    "/models/aliases",
    "/models/endpoints",
    "/models/endpoints/new",
    "/models/endpoints/{endpoint}",
    "/models/endpoints/{endpoint}/edit",
    "/try?run={run}",
    "/jobs",
    "/jobs/new",
    "/evaluations/new?recipe=generate",
    "/evaluations",
    "/evaluations/new",
    "/leaderboards",
    "/judges",
    "/judges/new",
    "/judges/new?kind=pairwise_rubric",
    "/judges/{judge}",
    "/judges/{judge}/edit",
    "/judges/{judge}/examples",
    "/judges/{judge}/versions/2",
    "/judges/{judge}/compare?before=1&after=2",
    "/verdicts/{verdict}",
    "/verifiers",
    "/objectives",
    "/objectives/icepop",
    "/settings/profile",
    "/settings/data",
    "/settings/second-factor",
    "/settings/second-factor/app",
    "/settings/second-factor/keys/add",
    "/settings/sign-in",
    "/settings/tokens",
    "/settings/members",
    "/settings/webhooks",
    "/settings/audit",
    "/workspaces",
    "/notices",
    "/settings/notices",
    "/settings/share-links",
    "/runs/compare?ids={run},{draft}",
    "/datasets/{dataset}/versions/1",
    "/projects/{project}/work",
    "/models/{model}/edit",
    "/experiments/sweeps/{sweep}/again",
    "/help",
    "/help/running",
    "/help/glossary",
)
OF_ADMINISTRATORS = (
    "/installation",
    "/installation/people",
    "/installation/directories",
    "/installation/audit",
    "/installation/reconciler",
    "/installation/limits",
    "/installation/backups",
    "/installation/retention",
)
AT_ONCE = 29
"""The pages of one test. Each test makes the workspace anew, and three parallel workers share the tests."""
# a third of the rules find no serious fault by their own grade (`region`, for one, looks at all elements of a page), and are not run
LOOK = """async () => (await axe.run(document, {
  resultTypes: ["violations"],
  rules: Object.fromEntries(axe._audit.rules
    .filter((rule) => ["minor", "moderate"].includes(rule.impact))
    .map((rule) => [rule.id, { enabled: false }])),
})).violations
  .filter((found) => ["serious", "critical"].includes(found.impact))
  .flatMap((found) => found.nodes.map((node) => `${found.id}: ${node.target.join(" ")}: ${node.failureSummary}`))"""

COLOURS = LOOK.replace("resultTypes", 'runOnly: ["color-contrast", "link-in-text-block"], resultTypes')

# axe checks this rule only if it is asked: a person who speaks to a page says the words that a button shows
NAMED = """async () => (await axe.run(document, { runOnly: ["label-content-name-mismatch"] })).violations
  .flatMap((found) => found.nodes.map((node) => node.html))"""
WITH_MANY_ALIKE = ("/installation/people", "/settings/members", "/settings/tokens", "/settings/profile", "/workspaces")


@pytest.fixture
def page_ids(server, team, process) -> dict[str, object]:
    """The ids in `PAGES`, of a workspace in which one run is active, with an alarm and pass rates."""
    version = make_version(team.owner)
    model = RegisteredModel.objects.create(
        workspace=team.workspace, name="smollm2-135m-instruct", source="local", path="/m"
    )
    choice = checks.DatasetChoice(id=version.dataset_id)
    run = seed_run(launch.launch(team.owner, recipe="policy", config={"steps": 60}, dataset=choice), steps=30)
    known: dict[str, Any] = {
        "run": run.id,
        "dataset": version.dataset_id,
        "example": version.members.first().example_id,
    }
    wrong = drafts.RunDraft("policy", {"optim": {"lr": "fast"}}, choice, name="A draft with a problem")
    known["draft"] = drafts.save(team.owner, wrong).pk
    known |= {"model": model.pk} | looked_through(team, version) | project_ids(team) | judged(team)
    known["report"] = reported(team, run)
    known["study"] = studied(team, model.name)
    known["making"] = claims.launch(team.owner, "stages", dataset=None, model=None, seeds=2).pk
    known["measured"] = measured(team)
    known["sweep"] = swept(team, run)
    repeats.add(team.owner, run, repeats.RepeatAsked(Rhythm(at=time(2), weekday=6, zone="Europe/Vienna")))
    give_rubrics(team.owner, run)
    trainer = process(run)
    told_of_flattery(trainer)
    known["episode"] = in_turns(trainer, run)
    return known


def looked_through(team, version) -> dict[str, int]:
    """The results of a search for criteria in a version, and an import with a line that was refused."""
    counts = {"judged": 2, "idle": 1, "without_verdicts": 1, "rubrics_all_idle": 0}
    look = version.curations.create(kind="criteria", state="finished", result=counts)
    idle = [{"id": "c0", "text": "Uses $x^2$", "met": True, "of": 2}]
    look.findings.create(position=0, removes=True, detail={"criteria": idle})
    refused = ImportJob.objects.create(
        workspace=team.workspace,
        dataset_name="Set",
        file_name="set.jsonl",
        format="touchstone",
        state="failed",
        finished_at=timezone.now(),  # the first page lists what failed lately
        rejected=[{"line": 3, "field": "prompt", "reason": "is missing"}],
        rejected_count=1,
    )
    return {"found": look.pk, "refused": refused.pk}


def reported(team, run) -> int:
    """A report with a block of each kind, and a block that says why it has nothing to show."""
    blocks = [
        f"```chart\nmetric: eval/rubric_score, reward/mean\nruns: {run.pk}\n```",
        "```chart\nmetric: a\nruns: 999999\n```",
        f"```runs\nruns: {run.pk}\n```",
        f"```rollout\nrun: {run.pk}\nstep: 30\nprompt: 1\n```",
    ]
    return reports.create(team.owner, "Scaffolds help", "## What we saw\n\n" + "\n\n".join(blocks)).pk


def measured(team) -> int:
    """A dataset with pass rates. Its prompts are of each difficulty."""
    dataset = Dataset.objects.create(workspace=team.workspace, name="Sums")
    rates = {"easy": (8, 8), "fair": (3, 8), "hard": (0, 8)}
    rows = [Example.model_validate({"key": key, "prompt": [{"role": "user", "content": key}]}) for key in rates]
    version = new_dataset_version(team.owner, dataset, rows, None, {"from": "test"})
    probe_services.store(version, team.owner.user, MeasuredProbe(1, 0, "m", 8, 1.0, rates))
    return dataset.pk


def told_of_flattery(trainer) -> None:
    """An alarm of the run, with a response that a judge has graded."""
    alarm = {"signal": "flattery", "since": 6, "share": 0.5, "before": 0.01, "paid": 4.5}
    about = {"part": "rubric", "criterion": "Is polite", "places": [{"group": 0, "index": 0}]}
    rows = [graded(0, response="What a brilliant question! Red.")]
    trainer.post(trainer.event("rollouts", 7, rollouts=rows), trainer.event("alarm", 7, **alarm, **about))


def in_turns(trainer, run) -> int:
    """A response in several turns: a call, what came of it, and an answer."""
    call = {"tool": "search", "call": "c0"}
    turns = [
        {"author": "policy", "kind": "call", "text": '{"q": "shelf"}', "tokens": 6, **call},
        {
            "author": "env",
            "kind": "result",
            "text": "It is **empty**.",
            "tokens": 5,
            "seconds": 0.25,
            "failed": True,
            **call,
        },
        {"author": "policy", "text": "There is `nothing`.", "tokens": 4, "reward": 0.5},
    ]
    trainer.post(
        trainer.event("rollouts", 8, rollouts=[graded(0, response="Nothing.", turns=turns, finish_reason="env")])
    )
    return run.rollouts.get(step=8).pk


def swept(team, run) -> int:
    """A sweep with two active trials."""
    axes = [{"path": "optim.lr", "values": [1e-4, 1e-3]}]
    choice = checks.DatasetChoice(id=run.data.dataset_id)
    made = sweeps.launch(team.owner, Wish("policy", run.config, choice, axes, method="grid", source=run))
    rounds.advance(made.pk)
    return made.pk


def studied(team, model: str) -> int:
    """A claim that is tested on pairs with reasons."""
    responses = (Response(id="a", text="cruel"), Response(id="b", text="late"))
    judged = Preference(a="a", b="b", strength=2, rater="r", reasons=(Reason(text="cruel"),))
    pairs = make_version(team.owner, "reasons", rubrics=False, responses=responses, preferences=(judged,))
    shared = {"steps": 4, "reward": {"matcher": "words"}, "data": {"form": "lines"}}
    dataset = checks.DatasetChoice(id=pairs.dataset_id)
    return claims.launch(team.owner, "rationale", dataset=dataset, model=model, seeds=2, config=shared).pk


def project_ids(team) -> dict[str, int]:
    """A project with gold tasks and one answered task."""
    project = projects.create(
        team.owner, name="Colours", kind="pairwise", dataset=make_pairs(team.owner), guidelines="## Be fair\nAlways."
    )
    projects.set_state(team.owner, project, "open")
    projects.new_guidelines(team.owner, project, "## Be fair\nAlways and to all.")
    task_services.make(project.pk)
    gold_services.mark(team.owner, project, "labels", 1)
    (seat,) = queue.claim(team.reviewer, project, hold=1)
    queue.submit(team.reviewer, seat, {"verdict": "compared", "strength": 1}, None, 0.5)
    suggestions.keep(project, "Strict v1", 1, {seat.task_id: {"verdict": "compared", "strength": 1}})
    return {"project": project.pk, "task": seat.task_id}


def judged(team) -> dict[str, int]:
    """A judge with two versions. The newer one has recorded outputs."""
    endpoint = create_endpoint(team.owner, "recorded", name="tape")
    first = create_judge(team.owner, name="Strict", spec={"kind": "criterion"}, endpoint=endpoint)
    spec = {"kind": "criterion", "prompt": "{{response}}\nIs it true? {{criterion}}"}
    version = new_version(team.owner, first.judge, spec=spec, endpoint=endpoint)
    judge_calls(version, [INPUT])
    return {"judge": first.judge_id, "endpoint": endpoint.pk, "verdict": version.verdicts.first().pk}


def violations(page, address: str) -> list[str]:
    """The faults of the page in the theme that the browser asks for."""
    visit(page, address)
    return [f"{address}: {found}" for found in page.evaluate(LOOK) + layout_faults(page)]


_WITH_AXE: WeakSet[Page] = WeakSet()


def bring_axe(page: Page) -> None:
    """Loads axe in each document that `page` opens from now on. To send it to each document takes six times as long as to load it. The
    content security policy of the pages would refuse a script element.
    """
    if page not in _WITH_AXE:
        page.add_init_script(path=AXE)
        _WITH_AXE.add(page)


def visit(page, address: str) -> None:
    bring_axe(page)
    answer = page.goto(address)
    assert answer is not None and answer.ok, f"{address} is a page that says what went wrong"
    page.wait_for_load_state("networkidle")


def in_both_themes(page, address: str) -> list[str]:
    """The faults in both themes, in one visit. The style sheets follow the theme without a reload, and change only colours: in the dark
    theme, other rules are checked only where scripts draw the page again."""
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    visit(page, address)
    found = [f"{address}: {each}" for each in page.evaluate(LOOK) + layout_faults(page)]
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    assert page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    look = LOOK if page.locator("canvas").count() else COLOURS
    return found + [f"{address}, dark: {each}" for each in page.evaluate(look)]


def test_the_themes_differ_in_nothing_but_colours():
    sheets = {path: path.read_text() for path in STATIC.rglob("*.css") if "vendor" not in path.parts}
    asking = re.compile(r"[^{}]*(?:prefers-color-scheme|data-theme)[^{}]*\{([^}]*)\}")
    blocks = [
        block for text in sheets.values() for block in asking.findall(re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))
    ]
    assert len(blocks) == 2, "the two that choose a theme for those who do not follow the system"
    assert all(re.fullmatch(r"\s*color-scheme: (?:light|dark);\s*", block) for block in blocks)


def without_faults(page, addresses: list[str]) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not there: run `make setup`")
    found = [each for address in addresses for each in in_both_themes(page, address)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("first", range(0, len(PAGES), AT_ONCE), ids=lambda first: PAGES[first])
def test_no_page_has_a_serious_violation_in_either_theme(open_page, as_owner, page_ids, first):
    without_faults(open_page(as_owner), [address.format(**page_ids) for address in PAGES[first : first + AT_ONCE]])


def test_nor_has_a_page_of_administrators(open_page, as_owner, team):
    User.objects.filter(pk=team.owner.user_id).update(is_administrator=True)
    without_faults(open_page(as_owner), list(OF_ADMINISTRATORS))


def test_nor_has_the_one_of_people_who_are_not_signed_in(open_page, as_owner):
    page = open_page(as_owner)
    page.context.clear_cookies()
    without_faults(page, ["/sign-in"])


def test_buttons_that_look_alike_are_named_by_their_words_first(open_page, as_owner, team):
    User.objects.filter(pk=team.owner.user_id).update(is_administrator=True)
    create_token(team.owner, "nightly")
    page, found = open_page(as_owner), []
    for address in WITH_MANY_ALIKE:
        visit(page, address)
        found += page.evaluate(NAMED)
    assert not found, "\n".join(found)


def test_the_first_stop_of_the_keyboard_skips_to_the_content(open_page, as_owner):
    page = open_page(as_owner)
    page.goto("/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#content")).to_be_focused()


def test_the_palette_opens_and_closes_from_the_keyboard_and_gives_the_focus_back(open_page, as_owner):
    page = open_page(as_owner)
    page.goto("/")
    page.locator(".rail-item[href='/datasets']").focus()
    page.keyboard.press("Control+k")
    expect(page.locator("dialog[open] input")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)
    expect(page.locator(".rail-item[href='/datasets']")).to_be_focused()
