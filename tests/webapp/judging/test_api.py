import pytest

from tests.team import ApiClient
from webapp.inference.endpoints import services as endpoints
from webapp.judging.asking.calls import judge_calls
from webapp.judging.judges.services import create_judge
from webapp.judging.models import Verdict

from .conftest import MET, inputs

pytestmark = pytest.mark.django_db


@pytest.fixture
def tape(team):
    return endpoints.create_endpoint(team.researcher, "recorded", name="tape")


def post_judge(api, tape, **fields):
    return api.post("/judges", {"name": "Strict", "spec": {"kind": "criterion"}, "endpoint": tape.pk, **fields})


def test_kinds_come_with_all_that_an_editor_needs(api):
    found = {kind["name"]: kind for kind in api.get("/judge-kinds").json()["items"]}
    assert len(found) == 13
    kind = found["criterion"]
    assert set(kind["required"]) <= set(kind["variables"]) and kind["answer_schema"]["required"] == [
        "explanation",
        "met",
    ]
    assert kind["spec"]["kind"] == "criterion" and "votes" in kind["spec_schema"]["properties"]


def test_a_script_makes_a_judge_its_versions_and_finds_them(api, tape):
    first = post_judge(api, tape)
    assert first.status_code == 201
    judge = first.json()["judge_id"]
    spec = {"kind": "criterion", "votes": 3, "sampling": {"temperature": 0.7}}
    second = api.post(f"/judges/{judge}/versions", {"spec": spec, "endpoint": tape.pk, "note": "three votes"}).json()
    assert second["number"] == 2 and second["spec"]["votes"] == 3
    listed = api.get("/judges").json()["items"]
    assert [(row["name"], row["version_count"], row["latest"]["number"]) for row in listed] == [("Strict", 2, 2)]
    assert [row["number"] for row in api.get(f"/judges/{judge}/versions").json()["items"]] == [2, 1]
    assert api.get(f"/judges/{judge}/versions/2").json()["counts"] == {"done": 0, "missing": 0, "failed": 0}


def test_what_is_wrong_is_said_at_its_field(api, tape):
    wrong = post_judge(api, tape, spec={"kind": "criterion", "sampling": {"temperature": 9}})
    assert wrong.status_code == 422 and wrong.json()["error"]["fields"][0]["path"] == "sampling.temperature"
    assert post_judge(api, tape, spec={}).json()["error"]["fields"][0]["path"] == "kind"
    assert post_judge(api, tape, endpoint=10**9).status_code == 404
    post_judge(api, tape)
    assert post_judge(api, tape).json()["error"]["fields"][0]["path"] == "name"


def test_a_judge_is_renamed_put_away_and_given_examples(api, tape, examples):
    judge = post_judge(api, tape).json()["judge_id"]
    ids = [example.pk for example in examples]
    changed = api.patch(f"/judges/{judge}", {"name": "Mild", "archived": True, "fixed_examples": ids}).json()
    assert (changed["name"], changed["fixed_examples"]) == ("Mild", ids) and changed["archived_at"]
    assert api.get("/judges").json()["items"] == []
    assert len(api.get("/judges", archived="true").json()["items"]) == 1


def test_a_change_that_is_refused_in_part_changes_nothing(api, tape):
    path = f"/judges/{post_judge(api, tape).json()['judge_id']}"
    refused = api.patch(path, {"name": "Other", "fixed_examples": [10**9], "archived": True})
    assert refused.status_code == 422
    now = api.get(path).json()
    assert (now["name"], now["archived_at"]) == ("Strict", None)


def test_a_verdict_opens_down_to_the_raw_text(api, version, chat_server):
    chat_server.answer = lambda body: MET
    judge_calls(version, inputs(1))
    listed = api.get(f"/judges/{version.judge_id}/versions/1/verdicts", state="done").json()["items"]
    assert len(listed) == 2 and "raw" not in listed[0]
    opened = api.get(f"/verdicts/{listed[0]['id']}").json()
    assert opened["raw"] == MET and opened["parsed"]["met"] and opened["request"]["messages"]
    assert api.get(f"/judges/{version.judge_id}/versions/1/verdicts", state="failed").json()["items"] == []


def test_a_draft_is_tried_and_its_results_fetched(
    api, endpoint, examples, chat_server, eager, django_capture_on_commit_callbacks
):
    chat_server.answer = lambda body: MET
    body = {"spec": {"kind": "criterion"}, "endpoint": endpoint.pk, "examples": [examples[0].pk]}
    with django_capture_on_commit_callbacks(execute=True):
        started = api.post("/judge-trials", body)
    assert started.status_code == 201
    trial = api.get(f"/judge-trials/{started.json()['id']}").json()
    assert trial["state"] == "finished" and trial["results"]["calls"][0]["raw"] == MET


def test_versions_are_compared_over_the_api(
    api, version, examples, chat_server, eager, django_capture_on_commit_callbacks
):
    judge = version.judge_id
    api.post(
        f"/judges/{judge}/versions", {"spec": {"kind": "criterion", "retries": 0}, "endpoint": version.endpoint_id}
    )
    assert api.post(f"/judges/{judge}/comparisons", {"before": 1, "after": 2}).status_code == 422
    api.patch(f"/judges/{judge}", {"fixed_examples": [examples[0].pk]})
    with django_capture_on_commit_callbacks(execute=True):
        started = api.post(f"/judges/{judge}/comparisons", {"before": 1, "after": 2}).json()
    assert api.get(f"/judge-trials/{started['id']}").json()["results"]["changed"] == 0


READS = ["/judge-kinds", "/judges", "/judges/{j}", "/judges/{j}/versions", "/judges/{j}/versions/1", "/verdicts/{v}"]
READS += ["/judges/{j}/versions/1/verdicts"]


@pytest.mark.parametrize("path", READS)
def test_who_may_read(path, team, version, chat_server):
    judge_calls(version, inputs(1, criteria=1))
    path = path.format(j=version.judge_id, v=Verdict.objects.get().pk)
    own = "{" not in path and path in ("/judge-kinds", "/judges")
    expected = {"owner": 200, "researcher": 200, "reviewer": 200, "annotator": 403, "outsider": 200 if own else 404}
    assert {role: ApiClient(getattr(team, role)).get(path).status_code for role in expected} == expected


def test_who_may_write(team, tape, examples):
    version = create_judge(team.researcher, name="J", spec={"kind": "criterion"}, endpoint=tape)
    judge, spec = version.judge_id, {"kind": "criterion"}
    writes = [
        ("post", "/judges", {"name": "K", "spec": spec, "endpoint": tape.pk}),
        ("patch", f"/judges/{judge}", {"name": "L"}),
        ("post", f"/judges/{judge}/versions", {"spec": spec, "endpoint": tape.pk}),
        ("post", f"/judges/{judge}/comparisons", {"before": 1, "after": 1}),
        ("post", "/judge-trials", {"spec": spec, "endpoint": tape.pk, "examples": [examples[0].pk]}),
    ]
    for method, path, body in writes:
        for role, allowed in (("annotator", {403}), ("reviewer", {403}), ("outsider", {404})):
            status = getattr(ApiClient(getattr(team, role)), method)(path, body).status_code
            assert status in allowed, (role, method, path)


def test_lists_cost_the_same_number_of_queries_however_long(api, team, tape, django_assert_max_num_queries):
    def ask():
        api.get("/judges")

    for number in range(2):
        create_judge(team.researcher, name=f"J{number}", spec={"kind": "criterion"}, endpoint=tape)
    with django_assert_max_num_queries(8) as few:
        ask()
    for number in range(2, 8):
        create_judge(team.researcher, name=f"J{number}", spec={"kind": "criterion"}, endpoint=tape)
    with django_assert_max_num_queries(len(few)):
        ask()
