"""The client tries again, follows pages, launches once, and reports the server's refusals."""

import json

import httpx
import pytest
from touchstone.http import ApiError, Away
from touchstone.server import Server


class Script(httpx.BaseTransport):
    def __init__(self, *answers) -> None:
        self.answers, self.asked = list(answers), []

    def handle_request(self, request):
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def server(*answers, **options) -> tuple[Server, Script, list[float]]:
    pauses: list[float] = []
    script = Script(*answers)
    return Server("http://x.test", "ts_secret", transport=script, sleep=pauses.append, **options), script, pauses


def test_what_is_away_for_a_moment_is_tried_again_with_the_same_key():
    run = {"id": 7}
    known, script, pauses = server(
        httpx.ConnectError("refused"), httpx.Response(503, json={}), httpx.Response(429, headers={"Retry-After": "9"}, json={}),
        httpx.Response(201, json=run),
    )  # fmt: skip
    assert known.launch({"recipe": "policy"}) == run
    keys = {request.headers["Idempotency-Key"] for request in script.asked}
    assert len(keys) == 1 and len(script.asked) == 4
    assert pauses[2] >= 9 and pauses[0] < pauses[1] * 4


def test_each_try_after_the_first_has_its_reason():
    told: list[str] = []
    known, _, _ = server(
        httpx.ConnectError("refused"), httpx.Response(503, json={}), httpx.Response(200, json={}), notice=told.append
    )
    known.get("/me")
    assert [each.partition(":")[0] for each in told] == ["http", "http"] and "refused" in told[0] and "503" in told[1]


def test_a_server_that_stays_away_is_told():
    known, script, _ = server(*[httpx.ConnectError("refused")] * 3, tries=3)
    with pytest.raises(Away, match="does not answer"):
        known.get("/me")
    assert len(script.asked) == 3


def test_an_address_without_its_protocol_is_told_and_not_tried_again():
    pauses: list[float] = []
    known = Server("127.0.0.1:8000", "ts_secret", sleep=pauses.append)
    with pytest.raises(Away, match="127.0.0.1:8000 cannot be used: it must begin with http:// or https://"):
        known.get("/me")
    assert pauses == []


def test_the_blanks_around_a_token_are_left_out_and_other_letters_are_refused():
    assert Server("http://x.test", "ts_secret\n").token == "ts_secret"
    with pytest.raises(ValueError, match="copy it once more"):
        Server("http://x.test", "ts_secrét")


def test_an_answer_that_is_not_of_our_server_is_told():
    known, _, _ = server(httpx.Response(200, text="<html>"), httpx.Response(404, json={"error": "no such page"}))
    with pytest.raises(ValueError, match="Is a Touchstone server there"):
        known.get("/me")
    with pytest.raises(ApiError, match="no such page"):
        known.get("/me")


def test_a_refusal_is_not_tried_again_and_names_its_fields():
    body = {"error": {"code": "invalid_config", "message": "No.", "fields": [{"path": "steps", "message": "too few"}]}}
    known, script, _ = server(httpx.Response(422, json=body))
    with pytest.raises(ApiError, match="steps: too few") as caught:
        known.launch({})
    assert (caught.value.status, caught.value.code, len(script.asked)) == (422, "invalid_config", 1)


def test_lists_are_read_to_their_end():
    known, script, _ = server(
        httpx.Response(200, json={"items": [{"id": 1}], "next": "c1"}),
        httpx.Response(200, json={"items": [{"id": 2}], "next": None}),
    )
    assert [each["id"] for each in known.all("/runs", state="active")] == [1, 2]
    assert script.asked[1].url.params["cursor"] == "c1" and script.asked[1].url.params["state"] == "active"


def test_the_token_is_in_no_words_of_it():
    known, _, _ = server()
    assert "ts_secret" not in repr(known)


def feed(*messages) -> httpx.Response:
    text = "".join(f"event: {told['type']}\ndata: {json.dumps(told)}\n\n: still here\n\n" for told in messages)
    return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=text.encode())


NOW, POINT = {"type": "now", "state": "running"}, {"type": "metrics", "step": 1, "values": {"loss": 0.5}}
END = {"type": "run", "state": "finished"}


def test_a_run_is_followed_over_breaks_to_its_end():
    known, script, pauses = server(
        feed(NOW, POINT), httpx.ConnectError("refused"), httpx.Response(503, json={}), feed({**NOW, "step": 2}, END)
    )
    assert list(known.follow(7)) == [NOW, POINT, {**NOW, "step": 2}, END]
    assert {request.url.path for request in script.asked} == {"/api/v1/runs/7/feed"} and len(script.asked) == 4
    assert len(pauses) == 3 and pauses[0] < pauses[2]


def test_a_run_that_cannot_be_followed_is_told():
    known, script, _ = server(httpx.Response(404, json={"error": {"code": "not_found", "message": "No such run."}}))
    with pytest.raises(ApiError, match="No such run"):
        list(known.follow(7))
    known, script, _ = server(*[httpx.ConnectError("refused")] * 3, tries=3)
    with pytest.raises(Away):
        list(known.follow(7))
    assert len(script.asked) == 3


def test_a_deleted_run_ends_what_follows_it():
    known, script, _ = server(feed(NOW, {"type": "gone"}))
    assert [told["type"] for told in known.follow(7)] == ["now", "gone"]


def test_without_a_token_a_request_has_no_header_of_one():
    """A header with an empty token is not HTTP: the program was told that the server does not answer."""
    script = Script(httpx.Response(401, json={"error": {"code": "no_token", "message": "Sign in."}}))
    known = Server("http://x.test", transport=script, sleep=lambda seconds: None)
    with pytest.raises(ApiError, match="Sign in"):
        known.get("/me")
    assert "Authorization" not in script.asked[0].headers
