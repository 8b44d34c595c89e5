"""A registered model answers over the API, token by token, from a separate process that stays warm."""

import json
import shutil
import sys
from typing import Any

import pytest
from django.core.cache import cache

from tests import fork_server
from tests.team import ApiClient
from webapp.inference.models import RegisteredModel
from webapp.inference.serving import process, stream

# the test client causes it, a server does not
pytestmark = pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume")


@pytest.fixture
def tiny(team, tiny_folder, short_var, settings):
    settings.MODEL_COMMAND = [*fork_server.command(), "model-server"]
    return RegisteredModel.objects.create(workspace=team.workspace, name="tiny", source="local", path=str(tiny_folder))


def events(response) -> list[tuple[str, dict]]:
    assert response.status_code == 200, response.content
    assert response["Content-Type"] == "text/event-stream; charset=utf-8"
    text = b"".join(response).decode()
    found = []
    for block in text.strip().split("\n\n"):
        name, data = block.split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def greedy(folder, prompt: str, count: int) -> list[int]:
    """The answer of stock transformers."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    conversation = [{"role": "user", "content": prompt}]
    given: Any = tokenizer.apply_chat_template(
        conversation, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    with torch.no_grad():
        model: Any = AutoModelForCausalLM.from_pretrained(folder)
        out = model.generate(**given, do_sample=False, max_new_tokens=count)
    return out[0, given["input_ids"].shape[1] :].tolist()


def test_the_tokens_come_one_by_one_and_are_those_of_stock_transformers(api, tiny, settings):
    settings.MODEL_COMMAND = fork_server.command("tests.webapp.inference.serving.lazy_server")
    body = {"prompt": "hello", "max_new_tokens": 12}
    first = events(api.post(f"/models/{tiny.id}/generate", body))
    names = [name for name, _ in first]
    assert names[0] == "loading" and names[-1] == "done"
    tokens = [data["token"] for name, data in first if name == "token"]
    assert tokens == greedy(tiny.path, "hello", 12) == first[-1][1]["tokens"]
    assert "".join(data["text"] for name, data in first if name == "token") == first[-1][1]["text"]
    (child,) = process._children
    again = events(api.post(f"/models/{tiny.id}/generate", body))
    assert "loading" not in [name for name, _ in again], "the process stays warm"
    assert again[-1][1]["tokens"] == tokens and process._children == [child]


def test_an_idle_model_makes_room_for_another(team, api, tiny, tiny_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(process, "MOST_MODELS", 1)
    other_folder = tmp_path / "other"
    shutil.copytree(tiny_folder, other_folder)
    other = RegisteredModel.objects.create(workspace=team.workspace, name="o", source="local", path=str(other_folder))
    for model in (tiny, other):
        assert events(api.post(f"/models/{model.id}/generate", {"prompt": "x", "max_new_tokens": 2}))[-1][0] == "done"
    assert len(list(process._place(loaded_source(tiny), "").parent.glob("model-*.sock"))) == 1


def loaded_source(model):
    from webapp.inference.queries import source

    return source(model)


def test_a_folder_without_a_model_is_said_in_the_stream(team, api, short_var, tmp_path):
    """This process starts as the product starts it."""
    model = RegisteredModel.objects.create(workspace=team.workspace, name="m", source="local", path=str(tmp_path))
    ((_, _), (name, told)) = events(api.post(f"/models/{model.id}/generate", {"prompt": "x"}))
    assert name == "error" and told["code"] == "failed" and "no config.json" in told["message"]


def test_where_torch_is_missing_the_reason_is_told(api, tiny, settings):
    settings.MODEL_COMMAND = [sys.executable, "-c", "raise SystemExit('no torch on this machine')"]
    ((name, told),) = events(api.post(f"/models/{tiny.id}/generate", {"prompt": "x"}))
    assert (name, told["code"]) == ("error", "failed") and "no torch on this machine" in told["message"]


def test_what_is_asked_for_is_checked_at_its_field(api, team):
    model = RegisteredModel.objects.create(workspace=team.workspace, name="m", source="hub", path="o/m")
    for body, field in [
        ({}, ""),
        ({"prompt": "x", "messages": [{"role": "user", "content": "x"}]}, ""),
        ({"prompt": "x", "max_new_tokens": 0}, "max_new_tokens"),
        ({"prompt": "x", "top_p": 0}, "top_p"),
        ({"prompt": "x", "colour": 1}, "colour"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages.0.role"),
    ]:
        answer = api.post(f"/models/{model.id}/generate", body)
        assert answer.status_code == 422, body
        assert field in [each["path"] for each in answer.json()["error"]["fields"]], answer.json()


def test_a_model_that_cannot_answer_is_refused_before_the_stream(api, team):
    rows = RegisteredModel.objects
    gone = rows.create(workspace=team.workspace, name="gone", source="run", path="/no/such/folder")
    scorer = rows.create(workspace=team.workspace, name="scorer", source="hub", path="o/m", head="scalar")
    assert api.post(f"/models/{gone.id}/generate", {"prompt": "x"}).status_code == 410
    refused = api.post(f"/models/{scorer.id}/generate", {"prompt": "x"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "not_a_writer")


def test_only_those_who_may_start_runs_may_ask(team):
    model = RegisteredModel.objects.create(workspace=team.workspace, name="m", source="hub", path="o/m")
    path, body = f"/models/{model.id}/generate", {"prompt": "x"}
    assert ApiClient(team.reviewer).post(path, body).status_code == 403
    assert ApiClient(team.outsider).post(path, body).status_code == 404


def test_one_person_has_only_so_many_answers_under_way(api, team, monkeypatch):
    model = RegisteredModel.objects.create(workspace=team.workspace, name="m", source="hub", path="o/m")
    begun = [api.post(f"/models/{model.id}/generate", {"prompt": "x"}) for _ in range(stream.AT_ONCE)]
    refused = api.post(f"/models/{model.id}/generate", {"prompt": "x"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "busy")
    for close in begun[0]._resource_closers:  # a server closes it, also if nobody has read the answer
        close()
    assert api.post(f"/models/{model.id}/generate", {"prompt": "x"}).status_code == 200
    cache.clear()
    monkeypatch.setattr(stream, "PER_MINUTE", 1)
    assert [api.post(f"/models/{model.id}/generate", {"prompt": "x"}).status_code for _ in range(2)] == [200, 429]
