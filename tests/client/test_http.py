"""Tries again, pages, launches once, and says what the server refuses."""

import httpx
import pytest
from touchstone.http import ApiError, Away, Server


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


def test_a_server_that_stays_away_is_told():
    known, script, _ = server(*[httpx.ConnectError("refused")] * 3, tries=3)
    with pytest.raises(Away, match="does not answer"):
        known.get("/me")
    assert len(script.asked) == 3


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
