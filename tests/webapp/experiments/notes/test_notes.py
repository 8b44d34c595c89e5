"""Notes on tokens of a response: the tokens that they mark, who may do what with them, and edits in two tabs."""

from functools import partial
from typing import Any

import pytest

from tests.concurrency import concurrently
from tests.team import ApiClient
from webapp.core.models import AuditEntry
from webapp.core.problems import Conflict, Invalid
from webapp.core.requests import idempotency
from webapp.experiments.models import Rollout, TokenNote
from webapp.experiments.notes import queries, services
from webapp.experiments.notes.services import TokenSpan

TOKENS = ["The", " sky", " is", " green", "."]
PLACE: dict[str, Any] = {"step": 3, "phase": "train", "group": 0, "index": 1}


@pytest.fixture
def rollout(run) -> Rollout:
    content = {"response": "".join(TOKENS), "tokens": TOKENS}
    return Rollout.objects.create(run=run, example_key="e0", content=content, **PLACE)


@pytest.fixture
def note(team, rollout) -> TokenNote:
    return services.write(team.researcher, rollout.run, TokenSpan(**PLACE, start=3, end=4), "It is **not**.")


def address(run, rest="") -> str:
    return f"/runs/{run.pk}/rollouts/notes{rest}"


def body(**fields) -> dict:
    return {**PLACE, "start": 3, "end": 5, "quote": " green.", "text": "Wrong colour"} | fields


def test_a_note_quotes_its_tokens(note, rollout, team):
    assert (note.quote, note.text, note.created_by) == (" green", "It is **not**.", team.researcher.user)
    ((read,), following) = queries.notes(rollout.run)
    assert read.holds and read.example_key == "e0" and following is None


@pytest.mark.parametrize(
    "tokens",
    [
        ["The", " sky", " is", " blue", "."],  # sampled again after a resume
        ["The sky", " is", " green", "."],  # the same text in other pieces
        ["The", " sky"],  # shorter
        None,  # not recorded
    ],
)
def test_a_note_marks_nothing_if_other_tokens_stand_there(note, rollout, tokens):
    Rollout.objects.filter(pk=rollout.pk).update(content={"response": "x", **({"tokens": tokens} if tokens else {})})
    ((read,), _) = queries.notes(rollout.run)
    assert not read.holds and read.note.quote == " green"


def test_a_note_outlives_its_response(note, rollout):
    rollout.delete()
    ((read,), _) = queries.notes(note.run)
    assert not read.holds and read.example_key == ""


@pytest.mark.parametrize(
    ("span", "text", "field"),
    [
        ({"start": 3, "end": 6}, "x", "end"),
        ({"start": 3, "end": 3}, "x", "end"),
        ({"start": 0, "end": 1, "index": 9}, "x", "step"),
        ({"start": 0, "end": 1}, " \n", "text"),
        ({"start": 0, "end": 1}, "x" * 4_001, "text"),
    ],
)
def test_what_cannot_be_a_note(team, rollout, span, text, field):
    with pytest.raises(Invalid) as refused:
        services.write(team.researcher, rollout.run, TokenSpan(**PLACE | span), text)
    assert field in refused.value.fields
    assert not TokenNote.objects.exists()


def test_tokens_that_were_not_recorded_cannot_be_named(team, rollout):
    Rollout.objects.update(content={"response": "x", "tokens": []})
    with pytest.raises(Invalid, match="not recorded"):
        services.write(team.researcher, rollout.run, TokenSpan(**PLACE, start=0, end=1), "x")


def test_what_the_writer_does_not_see_is_refused(team, rollout):
    with pytest.raises(Conflict):
        services.write(team.researcher, rollout.run, TokenSpan(**PLACE, start=3, end=4, quote=" blue"), "x")
    assert not TokenNote.objects.exists()


def test_a_second_submit_finds_the_first_note(team, rollout):
    client, place = ApiClient(team.researcher).client, f"/api/v1{address(rollout.run)}"

    def send(**fields):
        return client.post(place, body(**fields), content_type="application/json", headers={"Idempotency-Key": "k1"})

    first = send()
    assert first.status_code == 201 and first.json()["quote"] == " green." and first.json()["holds"]
    assert send().json()["id"] == first.json()["id"]
    assert TokenNote.objects.count() == 1 and AuditEntry.objects.filter(action="run.note_written").count() == 1
    other = send(text="Another")
    assert other.status_code == 422 and other.json()["error"]["code"] == "key_reused"


@pytest.mark.django_db(transaction=True)
def test_two_submits_at_once_make_one_note(team, rollout):
    key = idempotency.key("k1", "x")
    write = partial(services.write, team.researcher, rollout.run, TokenSpan(**PLACE, start=0, end=1), "x", key)
    notes = concurrently([write, write])
    assert len({note.pk for note in notes}) == 1 and TokenNote.objects.count() == 1


def test_of_two_changes_from_the_same_words_one_is_refused(team, note):
    services.rewrite(team.researcher, note, "First tab", 1)
    with pytest.raises(Conflict) as refused:
        services.rewrite(team.researcher, note, "Second tab", 1)
    assert (refused.value.extra["text"], refused.value.extra["revision"]) == ("First tab", 2)
    note.refresh_from_db()
    assert note.text == "First tab" and note.changed_at is not None
    services.delete(team.researcher, note)
    with pytest.raises(Conflict, match="deleted"):
        services.rewrite(team.researcher, note, "Third tab", 2)


def test_its_author_changes_and_deletes_it(team, note, rollout):
    author, place = ApiClient(team.researcher), address(rollout.run, f"/{note.pk}")
    changed = author.patch(place, {"text": "Better", "revision": 1})
    assert changed.status_code == 200 and (changed.json()["text"], changed.json()["revision"]) == ("Better", 2)
    late = author.patch(place, {"text": "Late", "revision": 1})
    assert late.status_code == 409 and (late.json()["text"], late.json()["revision"]) == ("Better", 2)
    assert author.delete(place).status_code == 204 and author.delete(place).status_code == 404
    told = AuditEntry.objects.filter(object_type="run", action__startswith="run.note").order_by("id")
    assert [each.action for each in told] == ["run.note_written", "run.note_changed", "run.note_deleted"]


def test_others_read_it_and_an_owner_may_delete_it(team, note, rollout):
    place = address(rollout.run, f"/{note.pk}")
    reviewer, owner = ApiClient(team.reviewer), ApiClient(team.owner)
    seen = reviewer.get(place).json()
    assert seen["author"] == "Rosa" and not seen["may_change"] and not seen["may_delete"]
    for refused in (reviewer.patch(place, {"text": "x", "revision": 1}), reviewer.delete(place)):
        assert refused.status_code == 403
    assert reviewer.post(address(rollout.run), body()).status_code == 403
    assert owner.patch(place, {"text": "x", "revision": 1}).status_code == 403, "nobody puts words into another's mouth"
    assert owner.get(place).json()["may_delete"] and owner.delete(place).status_code == 204
    assert ApiClient(team.annotator).get(address(rollout.run)).status_code == 403
    assert ApiClient(team.outsider).get(address(rollout.run)).status_code == 404


def test_a_researcher_who_became_a_reviewer_no_longer_changes_it(team, note, rollout):
    team.researcher.role = "reviewer"
    team.researcher.save()
    api = ApiClient(team.researcher)
    assert not api.get(address(rollout.run, f"/{note.pk}")).json()["may_change"]
    assert api.patch(address(rollout.run, f"/{note.pk}"), {"text": "x", "revision": 1}).status_code == 403


def test_the_list_is_of_a_step_or_of_the_run(team, note, rollout):
    content = {"response": "x", "tokens": ["x"]}
    Rollout.objects.create(run=rollout.run, example_key="e1", content=content, **PLACE | {"step": 4})
    services.write(team.owner, rollout.run, TokenSpan(**PLACE | {"step": 4}, start=0, end=1), "later")
    api = ApiClient(team.reviewer)
    assert [each["text"] for each in api.get(address(rollout.run)).json()["items"]] == ["later", "It is **not**."]
    assert [each["step"] for each in api.get(address(rollout.run, "?step=3&phase=train")).json()["items"]] == [3]
    assert api.get(address(rollout.run, "?phase=eval")).json()["items"] == []
    first = api.get(address(rollout.run, "?limit=1")).json()
    assert api.get(address(rollout.run, f"?limit=1&cursor={first['next']}")).json()["items"][0]["step"] == 3


def test_queries_do_not_grow_with_the_notes(team, rollout, django_assert_num_queries):
    for start in range(4):
        services.write(team.owner, rollout.run, TokenSpan(**PLACE, start=start, end=start + 1), "x")
    with django_assert_num_queries(2):
        found, _ = queries.notes(rollout.run)
        assert [str(each.note.created_by) for each in found] == ["Ada"] * 4


def test_its_address_leads_to_the_response(client, team, note, rollout):
    client.force_login(team.reviewer.user)
    page = f"/runs/{rollout.run_id}/notes/{note.pk}"
    wanted = f"/runs/{rollout.run_id}/rollouts?phase=train&step=3&key=e0&group=0&note={note.pk}"
    assert client.get(page).headers["location"] == wanted
    assert client.get(f"/runs/{rollout.run_id}/notes/{note.pk + 1}").status_code == 404
    client.force_login(team.annotator.user)
    assert client.get(page).status_code == 403


def test_the_account_of_its_author_may_be_erased(team, note, rollout):
    team.researcher.user.delete()
    seen = ApiClient(team.owner).get(address(rollout.run, f"/{note.pk}")).json()
    assert seen["author"] == "" and seen["text"] == "It is **not**."
