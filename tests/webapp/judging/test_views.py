"""Pages of judges."""

import hashlib
import json

import pytest

from tests.pages import page_html
from tests.team import browser
from tests.trainer.judges.inputs import STORED_GENERATOR
from webapp.inference.endpoints import services as endpoints
from webapp.judging.asking.calls import judge_calls
from webapp.judging.judges.services import create_judge, fix_examples, new_version
from webapp.judging.models import Judge, JudgeVersion, Trial, Verdict
from webapp.judging.templatetags.judging import short
from webapp.judging.trials.services import start_trial

from .conftest import MET, inputs

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("decision", "words"),
    [
        (True, "met"),
        ("A", "A"),
        (7, "7"),
        ({"c1": {"met": True}, "c2": {"met": False}}, "c1: met; c2: not met"),
        ({"0": {"flaws": [], "rests_on": "generic"}}, "0: flaws none, rests on generic"),
        ({"c1": {"necessity": 3, "rigidity": 5}}, "c1: necessity 3, rigidity 5"),
        (["one reason", "another"], "one reason; another"),
        ([[0, 1]], "[[0, 1]]"),
    ],
)
def test_a_decision_reads_as_words(decision, words):
    assert short(decision) == words


FORM = {
    "kind": "criterion",
    "system": "Be fair.\r\n{{answer_format}}",
    "prompt": "{{response}}\r\n{{criterion}}",
    "temperature": "0",
    "top_p": "1",
    "max_tokens": "256",
    "seed": "",
    "votes": "1",
    "retries": "2",
    "note": "",
}


@pytest.fixture
def tape(team):
    return endpoints.create_endpoint(team.researcher, "recorded", name="tape")


@pytest.fixture
def judge(team, tape):
    return create_judge(team.researcher, name="Strict", spec={"kind": "criterion"}, endpoint=tape).judge


def test_an_empty_list_says_what_to_do(as_researcher, team):
    assert b"No judges yet" in as_researcher.get("/judges").content
    assert b"New judge</a>" not in browser(team.reviewer).get("/judges").content


def test_every_kind_can_be_chosen_and_has_an_editor_with_its_variables(as_researcher, tape):
    from trainer.judges.spec import KINDS

    chooser = as_researcher.get("/judges/new").content.decode()
    for kind in KINDS.values():
        assert f"?kind={kind.name}" in chooser
        page = as_researcher.get(f"/judges/new?kind={kind.name}").content.decode()
        assert all(f'data-variable="{name}"' in page for name in kind.variables)
    assert b"Nobody to ask yet" not in as_researcher.get("/judges/new?kind=pairwise").content


def test_without_an_endpoint_the_editor_says_so(as_researcher):
    assert b"Nobody to ask yet" in as_researcher.get("/judges/new?kind=criterion").content


def test_the_form_makes_a_judge_with_the_templates_as_written(as_researcher, tape):
    answer = as_researcher.post("/judges/new?kind=criterion", {**FORM, "name": "Mine", "endpoint": tape.pk})
    assert answer.status_code == 302
    version = JudgeVersion.objects.get()
    assert version.spec["system"] == "Be fair.\n{{answer_format}}" and version.spec["sampling"]["max_tokens"] == 256


def test_a_generator_is_given_the_form_in_which_it_writes(as_researcher, tape):
    page = as_researcher.get("/judges/new?kind=rubric_generator").content.decode()
    assert "OpenRubrics: a checklist of four levels" in page and "JSON schema" in page
    spec = {**FORM, "prompt": "{{conversation}}", "name": "Writer", "endpoint": tape.pk}
    posted = {**spec, "form": "rubric_arm", "min_items": "2", "max_items": "10"}
    assert as_researcher.post("/judges/new?kind=rubric_generator", posted).status_code == 302
    version = JudgeVersion.objects.get()
    assert version.spec["form"] == "rubric_arm"
    shown = as_researcher.get(f"/judges/{version.judge_id}/versions/{version.number}").content.decode()
    assert f'href="/lineage/judge/{version.pk}?way=down"' in shown
    assert "rubric_arm" in shown and "JSON schema" not in shown  # it answers in plain text
    refused = as_researcher.post("/judges/new?kind=rubric_generator", {**posted, "name": "Other", "form": "prose"})
    assert refused.status_code == 422


def test_saving_an_unchanged_form_makes_no_version(as_researcher, judge, tape):
    from webapp.judging.editor.forms import JudgeForm

    initial = JudgeForm.initial_of(judge.versions.get().spec)
    posted = {name: str(value).replace("\n", "\r\n") for name, value in initial.items() if value is not None}
    assert as_researcher.post(f"/judges/{judge.pk}/edit", {**posted, "endpoint": tape.pk}).status_code == 302
    assert judge.versions.count() == 1


def test_saving_a_generator_from_before_there_were_forms_makes_no_version(as_researcher, team, tape):
    from webapp.judging.editor.forms import JudgeForm

    whole = json.dumps([str(tape.pk), STORED_GENERATOR], ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    row = Judge.objects.create(workspace=team.workspace, name="Writer", kind="rubric_generator")
    row.versions.create(
        number=1, spec=STORED_GENERATOR, endpoint=tape, digest=hashlib.sha256(whole.encode()).hexdigest()
    )
    assert as_researcher.get(f"/judges/{row.pk}/versions/1").status_code == 200
    page = as_researcher.get(f"/judges/{row.pk}/edit").content.decode()
    assert '<option value="touchstone"' in page.partition('name="form"')[2].partition("</option>")[0]
    initial = {**JudgeForm.initial_of(STORED_GENERATOR), "form": "touchstone"}
    posted = {name: str(value).replace("\n", "\r\n") for name, value in initial.items() if value is not None}
    assert as_researcher.post(f"/judges/{row.pk}/edit", {**posted, "endpoint": tape.pk}).status_code == 302
    assert row.versions.count() == 1


def test_what_is_wrong_stands_at_its_field(as_researcher, tape):
    wrong = {**FORM, "name": "Mine", "endpoint": tape.pk, "prompt": "{{respnse}} {{criterion}}", "votes": "3"}
    answer = as_researcher.post("/judges/new?kind=criterion", wrong)
    assert answer.status_code == 422
    page = answer.content.decode()
    assert "unknown variable {{respnse}}" in page and "samples at temperature 0 are all the same" in page
    assert not Judge.objects.exists()


def test_a_change_is_saved_as_the_next_version_and_compared_with_the_one_before(as_researcher, judge, tape):
    as_researcher.post(f"/judges/{judge.pk}/edit", {**FORM, "endpoint": tape.pk, "note": "shorter"})
    page = as_researcher.get(f"/judges/{judge.pk}").content.decode()
    assert "shorter" in page and "Compare</button>" in page
    compared = as_researcher.get(f"/judges/{judge.pk}/compare?before=1&after=2").content.decode()
    assert 'class="line added"' in compared and "sampling.max_tokens" in compared
    assert as_researcher.get(f"/judges/{judge.pk}/compare?before=1&after=9").status_code == 404
    assert as_researcher.get(f"/judges/{judge.pk}/compare?before=x&after=1").status_code == 404


def test_the_effect_of_a_change_is_shown_with_links_to_both_verdicts(
    as_researcher, team, version, examples, chat_server, eager, django_capture_on_commit_callbacks
):
    chat_server.answer = lambda body: MET
    judge = version.judge
    new_version(team.researcher, judge, spec={"kind": "criterion", "retries": 0}, endpoint=version.endpoint)
    fix_examples(team.researcher, judge, [examples[0].pk])
    path = f"/judges/{judge.pk}/compare"
    with django_capture_on_commit_callbacks(execute=True):
        assert as_researcher.post(path, {"before": 1, "after": 2}).status_code == 302
    page = page_html(as_researcher.get(f"{path}?before=1&after=2"))
    assert '<span class="strong num">0</span> of <span class="num">4</span> verdicts changed' in page
    assert f"/verdicts/{Verdict.objects.first().pk}" in page


def test_versions_that_read_what_no_example_holds_are_given_it_beside_the_button(
    as_researcher, team, endpoint, examples, chat_server, eager, django_capture_on_commit_callbacks
):
    chat_server.answer = lambda body: '{"matches": [{"generated": 1, "reference": 1}]}'
    judge = create_judge(team.researcher, name="Same", spec={"kind": "rubric_matcher"}, endpoint=endpoint).judge
    new_version(team.researcher, judge, spec={"kind": "rubric_matcher", "retries": 0}, endpoint=endpoint)
    fix_examples(team.researcher, judge, [each.pk for each in examples[:2]])
    path = f"/judges/{judge.pk}/compare"
    assert 'name="extra_generated"' in as_researcher.get(f"{path}?before=1&after=2").content.decode()
    with django_capture_on_commit_callbacks(execute=True):
        as_researcher.post(path, {"before": 1, "after": 2, "extra_generated": "Says yes\nIs short"})
    answer = as_researcher.get(f"{path}?before=1&after=2")
    assert '<span class="strong num">0</span> of <span class="num">2</span> verdicts changed' in page_html(answer)
    assert "95% interval 0% to 66%" in page_html(answer) and b"Says yes\nIs short</textarea>" in answer.content


def test_examples_are_offered_from_a_dataset_and_fixed(as_researcher, judge, examples):
    offered = as_researcher.get("/judges/examples", {"dataset": examples[0].dataset_id, "q": "e1"}).content.decode()
    assert "e1" in offered and "e2" not in offered
    assert as_researcher.get("/judges/examples", {"dataset": "x" * 40}).status_code == 200
    assert as_researcher.post(f"/judges/{judge.pk}/examples", {}).status_code == 422
    assert as_researcher.post(f"/judges/{judge.pk}/examples", {"examples": [examples[1].pk]}).status_code == 302
    assert b"e1" in as_researcher.get(f"/judges/{judge.pk}").content


def test_a_draft_is_tried_from_the_editor_with_prompt_raw_and_parsed(
    as_researcher, endpoint, examples, chat_server, eager, django_capture_on_commit_callbacks
):
    chat_server.answer = lambda body: "Well, " + MET
    with django_capture_on_commit_callbacks(execute=True):
        started = as_researcher.post("/judges/try", {**FORM, "endpoint": endpoint.pk, "examples": [examples[0].pk]})
    assert started.status_code == 200 and b"data-follow" in started.content
    shown = as_researcher.get(f"/judges/trials/{Trial.objects.get().pk}").content.decode()
    assert "every 1s" not in shown and "Well, {&quot;explanation" in shown and "Says yes." in shown
    assert "  &quot;met&quot;: true" in shown
    assert not Judge.objects.exists() and not Verdict.objects.exists()


def test_a_draft_that_cannot_run_says_why(as_researcher, tape, examples):
    ids = [examples[0].pk]
    refused = as_researcher.post("/judges/try", {**FORM, "endpoint": tape.pk, "examples": ids, "prompt": "{{x}}"})
    assert refused.status_code == 422 and b"unknown variable" in refused.content
    assert b"choose 1 to 20" in as_researcher.post("/judges/try", {**FORM, "endpoint": tape.pk}).content
    assert as_researcher.post("/judges/try", {"kind": "oracle"}).status_code == 422


def test_a_verdict_opens_down_to_the_raw_text(as_researcher, version, chat_server):
    chat_server.answer = lambda body: "<b>Hm</b>"
    judge_calls(version, inputs(1, criteria=1))
    verdict = Verdict.objects.get()
    listed = as_researcher.get(f"/judges/{version.judge_id}/versions/1?state=missing").content.decode()
    assert f"/verdicts/{verdict.pk}" in listed
    page = as_researcher.get(f"/verdicts/{verdict.pk}").content.decode()
    assert "&lt;b&gt;Hm&lt;/b&gt;" in page and "The answer holds no JSON object" in page and "Says 0." in page


def test_an_archived_judge_moves_to_its_list_and_back(as_researcher, judge):
    as_researcher.post(f"/judges/{judge.pk}/act", {"action": "archive"})
    assert b"Strict" not in as_researcher.get("/judges").content
    assert b"Strict" in as_researcher.get("/judges?archived=1").content
    as_researcher.post(f"/judges/{judge.pk}/act", {"action": "restore"})
    as_researcher.post(f"/judges/{judge.pk}/act", {"action": "rename", "name": "Mild"})
    assert b"Mild" in as_researcher.get("/judges").content


def test_who_sees_which_page(team, version, chat_server, examples):
    judge_calls(version, inputs(1, criteria=1))
    trial = start_trial(
        team.researcher, spec={"kind": "pointwise"}, endpoint=version.endpoint, examples=[examples[0].pk]
    )
    j = version.judge_id
    reads = ["/judges", f"/judges/{j}", f"/judges/{j}/versions/1", f"/verdicts/{Verdict.objects.get().pk}"]
    reads += [f"/judges/trials/{trial.pk}"]
    writes = ["/judges/new", f"/judges/{j}/edit", f"/judges/{j}/examples", "/judges/examples"]
    own = {"/judges", "/judges/new", "/judges/examples"}
    for path in reads + writes:
        expected = {"annotator": 403, "reviewer": 200 if path in reads else 403, "researcher": 200, "owner": 200}
        expected["outsider"] = 200 if path in own else 404
        found = {role: browser(getattr(team, role)).get(path).status_code for role in expected}
        assert found == expected, path


@pytest.mark.parametrize("path", ["/judges", "/judges/{j}", "/judges/{j}/versions/1"])
def test_pages_cost_the_same_number_of_queries_as_rows_double(
    path, as_researcher, team, version, chat_server, examples, django_assert_max_num_queries
):
    def grow(numbers):
        for number in numbers:
            create_judge(team.researcher, name=f"J{number}", spec={"kind": "criterion"}, endpoint=version.endpoint)
            spec = {"kind": "criterion", "retries": 0, "sampling": {"max_tokens": number + 10}}
            new_version(team.researcher, version.judge, spec=spec, endpoint=version.endpoint)
        judge_calls(version, inputs(len(numbers)))
        fix_examples(team.researcher, version.judge, [example.pk for example in examples[: len(numbers) // 2 + 1]])

    path = path.format(j=version.judge_id)
    grow(range(2))
    as_researcher.get(path)
    with django_assert_max_num_queries(30) as few:
        as_researcher.get(path)
    grow(range(2, 6))
    with django_assert_max_num_queries(len(few)):
        as_researcher.get(path)


def test_a_trial_begins_with_a_dataset_that_has_what_the_judge_must_see(as_researcher, tape, import_rows):  # noqa: F811
    """In an earlier version, it began with the first dataset by name, and every trial on it ended without a call."""
    prompt = [{"role": "user", "content": "Hello?"}]
    criteria = {"criteria": [{"id": "a", "text": "Greets.", "points": 1}]}
    bare = import_rows([{"key": "bare", "prompt": prompt}], name="A: prompts alone")
    whole = {"key": "whole", "prompt": prompt, "rubric": criteria, "responses": [{"id": "x", "text": "Hi."}]}
    page = as_researcher.get("/judges/new?kind=criterion").content.decode()
    assert "No dataset has all that this kind of judge must see: responses and criteria." in page
    fitting = import_rows([whole], name="B: answers by a rubric")
    page = as_researcher.get("/judges/new?kind=criterion").content.decode()
    assert (
        f'value="{fitting.version.dataset_id}" selected' in page
        and f'value="{bare.version.dataset_id}" selected' not in page
    )
    assert "No dataset has all" not in page


def test_a_version_is_described_in_the_words_of_its_form(as_researcher, judge):
    page = as_researcher.get(f"/judges/{judge.pk}/versions/1").content.decode()
    assert "<dt>Longest reply, tokens</dt>" in page and "<dt>Top p</dt>" in page and "max_tokens" not in page
