import pytest

pytestmark = pytest.mark.django_db


def test_every_verifier_is_listed_with_its_arguments_and_examples(as_annotator, api):
    assert b"word_count" in as_annotator.get("/verifiers").content
    listed = {each["name"]: each for each in api.get("/verifiers").json()["items"]}
    assert "max" in listed["word_count"]["schema"]["properties"] and listed["word_count"]["examples"]


def test_a_verifier_can_be_tried(api, as_annotator):
    assert api.post("/verifiers/word_count/try", {"text": "a b", "args": {"max": 3}}).json()["met"] is True
    wrong = api.post("/verifiers/word_count/try", {"text": "a", "args": {"mx": 3}})
    assert wrong.status_code == 422 and wrong.json()["error"]["fields"][0]["path"] == "args.mx"
    assert b"not met" in as_annotator.post("/verifiers/word_count/try", {"text": "a b", "args": '{"max": 1}'}).content
    assert as_annotator.post("/verifiers/word_count/try", {"text": "a", "args": "{"}).status_code == 422
