"""The pages of the objectives and their calculator."""

import html
import json
import re
import subprocess

import pytest

from tests.team import browser
from trainer.config.objectives.catalogue import CATALOGUE
from webapp.objectives import calculator
from webapp.objectives.views import _worked

pytestmark = pytest.mark.django_db


@pytest.fixture
def calculate(as_researcher, eager, django_capture_on_commit_callbacks):
    """Posts a record. Returns the answer that the page shows after a worker has worked."""

    def post(name, record, client=as_researcher):
        with django_capture_on_commit_callbacks(execute=True):
            first = client.post(f"/objectives/{name}/calculate", {"record": record})
        address = re.search(r'hx-get="(/objectives/calculations/[^"]+)"', first.content.decode())
        return client.get(address[1]) if address else first

    return post


@pytest.fixture
def printed(monkeypatch):
    """Replaces the calculator's process. Says what it prints, or how it ends."""

    def prepare(stdout="", stderr="", code=0):
        done = subprocess.CompletedProcess([], code, stdout, stderr)
        monkeypatch.setattr(subprocess, "run", lambda *args, **options: done)

    return prepare


def test_the_list_leads_to_a_page_for_each(as_researcher):
    page = as_researcher.get("/objectives").content.decode()
    for name, entry in CATALOGUE.items():
        assert f'href="/objectives/{name}"' in page
        shown = html.unescape(as_researcher.get(f"/objectives/{name}").content.decode())
        assert entry.formula in shown and entry.paper in shown and entry.when in shown
        for knob in entry.parameters.model_fields:
            assert knob in shown
        assert all(key in shown for key in _worked()[name]["result"]["diagnostics"])


def test_annotators_have_no_use_for_them_and_unknown_ones_are_not_there(as_annotator, as_researcher):
    assert as_annotator.get("/objectives").status_code == 403
    assert as_annotator.post("/objectives/grpo/calculate", {"record": "{}"}).status_code == 403
    assert as_researcher.get("/objectives/ppo").status_code == 404
    assert as_researcher.post("/objectives/ppo/calculate", {"record": "{}"}).status_code == 404


@pytest.mark.slow
def test_a_worker_calculates_with_the_code_that_trains(calculate):
    record = {"logp": [[-1.0, -2.0], [-0.5]], "logp_old": [[-1.0, -2.0], [-0.5]], "rewards": [1, 0]}
    page = calculate("grpo", json.dumps(record)).content.decode()
    # on policy: minus A_i / (G |y_i|) with A = 1, -1
    assert page.count("-0.2500") == 2 and "0.5000" in page
    assert "rewards: missing; grpo needs rewards or advantages" in html.unescape(
        calculate("grpo", json.dumps({"logp": [[-1.0]], "logp_old": [[-1.0]]})).content.decode()
    )


@pytest.mark.parametrize("record", ["", "{", "[1]", "null", "[" * 5000, "x" * 30_000])
def test_what_is_no_record_is_refused_before_a_worker_is_asked(as_researcher, monkeypatch, record):
    monkeypatch.setattr(calculator, "enqueue", lambda *args: pytest.fail("queued"))
    answer = as_researcher.post("/objectives/grpo/calculate", {"record": record})
    assert answer.status_code == 422 and b"record" in answer.content


def test_a_worker_without_torch_says_what_to_do_instead(calculate, printed):
    printed(stderr="Traceback ...\nModuleNotFoundError: No module named 'torch'", code=1)
    assert b"Run the command below" in calculate("grpo", "{}").content


def test_a_calculation_takes_its_turn(monkeypatch, team, printed):
    made = calculator.start(team.researcher, "grpo", "{}")
    with calculator._ONE_AT_A_TIME:
        assert not calculator.carry_out(made.id)
    printed('{"loss": 1.0}')
    assert calculator.carry_out(made.id)
    assert calculator.find(team.researcher, made.id).result == {"loss": 1.0}
    assert calculator.find(team.outsider, made.id) is None
    assert calculator.carry_out("forgotten")


def test_without_an_answer_the_page_stops_asking(as_researcher, team):
    made = calculator.start(team.researcher, "grpo", "{}")
    address = f"/objectives/calculations/{made.id}"
    assert b"hx-get" in as_researcher.get(address).content
    last = as_researcher.get(address, {"asked": calculator.PATIENCE_S + 1}).content
    assert b"hx-get" not in last and b"No worker has answered" in last
    assert browser(team.outsider).get(address).status_code == 404


def test_a_machine_is_not_kept_busy_by_one_person(as_researcher, monkeypatch):
    monkeypatch.setattr(calculator, "PER_MINUTE", 2)
    answers = [as_researcher.post("/objectives/grpo/calculate", {"record": "{}"}).status_code for _ in range(3)]
    assert answers == [200, 200, 429]
