"""A publication depends only on the base, the answers and the settings, and every label that is left out is counted."""

from collections import Counter

import pytest

from tests.team import ApiClient, browser
from tests.webapp.webhooks.hooks import announced_events, listen
from trainer.contracts import Example as Record
from webapp.annotation.agreement import refresh
from webapp.annotation.agreement.raters import raters
from webapp.annotation.models import Answer, Assignment, Resolution
from webapp.annotation.projects import growing
from webapp.annotation.publishing import data_description
from webapp.annotation.publishing import services as publish
from webapp.core.problems import Conflict, Invalid
from webapp.datasets.exports import annotated, data_card
from webapp.datasets.models import Dataset, DatasetVersion
from webapp.datasets.versions import services as datasets
from webapp.evaluation.sources import people

from ..answers import annotators, answer, grades, make_project, preference, rubric
from .test_answers import published

pytestmark = pytest.mark.django_db
ANSWERS = publish.Choice(what="answers", minimum=0.6)
IMPORTED = [{"a": "r1", "b": "r2", "strength": 1, "rater": "old"}]


@pytest.fixture
def project(team):
    """Eight pairs with an imported label each. On five the people agree, one is split, one has half of its answers, and on one two people
    differ.
    """
    made = make_project(team, n=8, preferences=IMPORTED)
    one, two = annotators(team, made)
    given = [(2, 2)] * 5 + [(-3, 3), (1, None), (-1, 1)]
    for task, (first, second) in zip(made.tasks.order_by("rank"), given, strict=True):
        answer(task, one, preference(first))
        if second is not None:
            answer(task, two, preference(second))
    refresh.bring_up_to_date(made)
    return made


def total(publication, fate: str) -> int:
    return sum(publication.counts[fate].values())


def test_the_same_request_makes_the_same_version_whatever_was_published_between(project, team):
    first = publish.publish(team.researcher, project)
    narrow = publish.publish(team.researcher, project, publish.Choice(what="answers", minimum=0.9, rest=False))
    assert narrow.version.counts["examples"] == 5 and narrow.version.digest != first.version.digest
    again = publish.publish(team.researcher, project)
    assert again.version.digest == first.version.digest and again.version.counts == first.version.counts
    assert again.counts == first.counts and total(again, "kept") == 5


def test_it_does_not_matter_who_else_published_or_imported(project, team):
    first = publish.publish(team.researcher, project, ANSWERS)
    dataset, records = project.version.dataset, [e.record for e in project.version.dataset.examples.order_by("id")[:3]]
    datasets.new_version(team.researcher, dataset, records[:2], None, {"from": "elsewhere"})
    other = make_project(team, "rating", n=1, scales=[{"name": "clarity"}])
    other.version = project.version
    other.save()
    assert publish.publish(team.researcher, project, ANSWERS).version == first.version


def test_a_side_drawn_later_for_another_version_changes_nothing(project, team):
    dataset = project.version.dataset
    first = publish.publish(team.researcher, project)
    record = dataset.examples.get(key="e0", memberships__version=project.version).record
    datasets.new_version(
        team.researcher, dataset, [record.model_copy(update={"split": "heldout"})], None, {"from": "elsewhere"}
    )
    assert publish.publish(team.researcher, project).version == first.version


@pytest.mark.parametrize("what", ["answers", "resolutions"])
def test_every_answer_of_a_person_is_in_the_version_or_counted_as_dropped(project, team, what):
    gold = project.tasks.order_by("rank").last()
    gold.overlap, gold.gold = None, preference(1)
    gold.save()
    opened = Assignment.objects.filter(task=project.tasks.order_by("rank").first()).first()
    Assignment.objects.filter(pk=opened.pk).update(state=Assignment.State.CLAIMED)
    refresh.review_again(project.pk, [opened.task_id])
    made = publish.publish(team.researcher, project, publish.Choice(what=what, minimum=0.9))
    answers = Answer.objects.filter(project=project, current=True).count()
    dropped = list(made.cases.filter(fate="dropped"))
    assert made.counts["answers"] + len(dropped) == answers == 15
    reasons = Counter(case.reason for case in dropped)
    assert reasons["gold"] == 2 and reasons["open"] == 1 and reasons["agreement"] == 2
    assert made.counts["dropped"] == reasons


def test_what_stands_counts_the_answers_behind_it_and_why_others_do_not_stand(project, team):
    listen(team.owner)
    made = publish.publish(team.researcher, project)
    (facts,) = [facts for event, facts in announced_events() if event == "project.published"]
    assert (facts["project"], facts["version"]) == (project.pk, made.version.number)
    assert made.counts["kept"] == {"": 5} and made.counts["answers"] == 10
    assert made.counts["dropped"] == {"undecided": 5}  # two split pairs and one with a single answer
    Resolution.objects.create(task=project.tasks.order_by("rank")[5], project=project, source="unresolved")
    made = publish.publish(team.researcher, project, publish.Choice(sources=("consolidated", "unanimous")))
    assert made.counts["dropped"] == {"undecided": 3, "unresolved": 2}
    Resolution.objects.filter(task=project.tasks.order_by("rank")[0]).update(source="consolidated")
    made = publish.publish(team.researcher, project, publish.Choice(sources=("consolidated",)))
    assert made.counts["kept"] == {"": 1} and made.counts["dropped"]["source"] == 8


def test_a_resolution_whose_answers_change_during_the_publication_is_not_published(project, team, monkeypatch):
    task = Resolution.objects.filter(source="unanimous").first().task
    reviewed = refresh.review_new

    def and_then_somebody_changes_their_mind(given):
        reviewed(given)
        answer(task, team.annotator, preference(-3))

    monkeypatch.setattr(publish, "review_new", and_then_somebody_changes_their_mind)
    made = publish.publish(team.researcher, project)
    assert not made.cases.filter(task=task, fate="kept").exists()
    assert set(made.cases.filter(task=task, fate="dropped").values_list("reason", flat=True)) == {"stale"}


@pytest.mark.parametrize("module", [publish, people], ids=["publication", "evaluation"])
def test_a_person_who_joins_while_answers_are_read_keeps_their_number(project, team, monkeypatch, module):
    first, second = sorted(raters(project).values(), key=lambda each: each.number)
    calls = []

    def before_the_second_came(of):
        calls.append(of)
        return {first.user: first} if len(calls) == 1 else raters(of)

    monkeypatch.setattr(module, "raters", before_the_second_came)
    if module is publish:
        made = publish.publish(team.researcher, project, publish.Choice(what="answers"))
        found = {each.whose.partition("@")[0] for each in made.cases.filter(fate="kept")}
    else:
        found = {rater for _, rater in people.current_answers(project.workspace_id, project.pk)}
    assert found == {first.pseudonym, second.pseudonym} == {"annotator-1", "annotator-2"}


def test_labels_before_are_replaced_or_stay_and_each_is_counted(project, team):
    made = publish.publish(team.researcher, project)
    assert made.counts["replaced"] == {"judged": 5} and made.counts["imported"] == {}
    assert made.counts["untouched"] == 3 and made.counts["left_out"] == 0
    beside = publish.publish(team.researcher, project, publish.Choice(replace=False))
    assert beside.counts["imported"] == {"": 5} and beside.counts["replaced"] == {}
    assert beside.version.counts["preferences"] == 5 + 5 + 3
    only = publish.publish(team.researcher, project, publish.Choice(rest=False))
    assert (only.counts["untouched"], only.counts["left_out"]) == (0, 3)


def test_built_on_its_own_publication_a_project_leaves_nothing_behind_of_it(project, team):
    every = publish.publish(team.researcher, project, publish.Choice(what="answers"))
    few = publish.Choice(what="answers", minimum=0.9, base=every.version.number)
    made = publish.publish(team.researcher, project, few)
    assert made.counts["kept"] == {"": 10} and made.counts["replaced"] == {"earlier": 15}
    raters = [p["rater"] for row in published(made.version).values() for p in row.get("preferences", ())]
    assert len(raters) == 10 and "preferences" not in published(made.version)["e5"]
    assert str(project.pk) not in published(made.version)["e5"].get("meta", {}).get("annotation", {})


def test_a_rubric_says_who_wrote_it_and_gives_way_to_the_annotated_one(team):
    criteria = {"criteria": [{"id": "c1", "text": "Is true", "points": 5}]}
    made = make_project(team, "rubric", n=1, rubric=criteria)
    for member in annotators(team, made):
        answer(made.tasks.get(), member, rubric("Names three rivers"))
    first = publish.publish(team.researcher, made)
    assert published(first.version)["e0"]["meta"]["rubric_by"] == f"unanimous@project-{made.pk}"
    assert first.counts["replaced"] == {"judged": 1} and first.cases.get(fate="replaced").whose == "imported"
    each = publish.Choice(what="answers", base=first.version.number)
    row = published(publish.publish(team.researcher, made, each).version)["e0"]
    assert [c["text"] for c in row["rubric"]["criteria"]] == ["Is true"] and "rubric_by" not in row["meta"]


def test_grades_published_before_are_counted_as_replaced(team):
    criteria = {"criteria": [{"id": "c1", "text": "Is true", "points": 5}]}
    made = make_project(team, "grading", n=1, rubric=criteria)
    for member in annotators(team, made):
        answer(made.tasks.get(), member, grades(c1="met"), order=(0,))
    first = publish.publish(team.researcher, made)
    again = publish.publish(team.researcher, made, publish.Choice(what="answers", base=first.version.number))
    assert again.counts["replaced"] == {"earlier": 1} and again.counts["kept"] == {"": 2}


def test_an_example_that_the_base_lacks_or_has_otherwise_is_counted(project, team):
    dataset = project.version.dataset
    records = {each.key: each.record for each in dataset.examples.all()}
    changed = records["e1"].model_copy(update={"responses": records["e1"].responses[:1], "preferences": ()})
    kept = [record for key, record in sorted(records.items()) if key not in ("e0", "e1")]
    smaller = datasets.new_version(team.researcher, dataset, [changed, *kept], None, {"from": "elsewhere"})
    made = publish.publish(team.researcher, project, publish.Choice(base=smaller.number))
    assert made.counts["kept"] == {"": 3} and made.counts["answers"] == 6
    assert made.counts["dropped"] == {"undecided": 5, "gone": 1, "changed": 1}
    assert set(made.cases.filter(fate="dropped", reason="gone").values_list("example", "answers")) == {("e0", 2)}


def test_a_base_must_be_a_version_of_the_dataset(project, team):
    with pytest.raises(Invalid, match="no such version"):
        publish.publish(team.researcher, project, publish.Choice(base=99))
    response = ApiClient(team.researcher).post(f"/projects/{project.pk}/publish", {"base": 99})
    assert response.status_code == 422 and response.json()["error"]["fields"][0]["path"] == "base"


def test_nothing_is_left_of_a_publication_without_labels(project, team):
    with pytest.raises(Conflict, match="nothing to publish"):
        publish.publish(team.researcher, project, publish.Choice(sources=("majority",)))
    assert project.version.dataset.versions.count() == 1 and not project.publications.exists()


def test_the_api_counts_labels_and_lists_the_cases_of_each_count(project, team):
    api = ApiClient(team.researcher)
    told = api.post(f"/projects/{project.pk}/publish", {"what": "answers", "minimum": 0.9}).json()
    assert told["base"] == 1 and told["publication"]
    labels = {each["fate"]: each for each in told["labels"]}
    assert labels["kept"]["count"] == 10 and labels["replaced"]["count"] == 5 and labels["dropped"]["count"] == 5
    assert labels["imported"]["count"] == 0 and told["untouched"] == 3
    assert {each["reason"]: each["count"] for each in labels["dropped"]["reasons"]} == {"agreement": 4, "alone": 1}
    listed = api.client.get(labels["dropped"]["cases"] + "&limit=2").json()
    assert len(listed["items"]) == 2 and listed["next"]
    rest = api.client.get(f"{labels['dropped']['cases']}&limit=9&cursor={listed['next']}").json()
    assert len(rest["items"]) == 3 and rest["next"] is None
    case = listed["items"][0]
    assert case["example"] == "e5" and case["whose"] == f"annotator-1@project-{project.pk}"
    assert case["reason"] == "agreement" and case["says"] == "A much better" and case["task"]
    path = f"/projects/{project.pk}/publications"
    assert api.get(path).json()["items"][0]["publication"] == told["publication"]
    assert api.get(f"{path}/{told['publication']}").json() == {**told}
    assert api.get(f"{path}/{told['publication']}/cases", fate="lost").status_code == 422


def test_the_page_links_each_count_to_its_cases(project, team):
    client = browser(team.researcher)
    form = {"what": "answers", "minimum": "0.9", "replace": "on", "rest": "on", "base": "1"}
    done = client.post(f"/projects/{project.pk}/publish", form)
    made = project.publications.get()
    assert done["Location"] == f"/projects/{project.pk}/publications/{made.pk}"
    page = client.get(done["Location"]).content.decode()
    for fate, count in (("kept", 10), ("replaced", 5), ("dropped", 5)):
        assert f'href="?fate={fate}"' in page and f">{count}<" in page
    cases = client.get(f"{done['Location']}?fate=dropped&reason=agreement").content.decode()
    assert ">e5<" in cases and ">e6<" not in cases, "with its tags: two characters alone may stand in a random token"
    assert "less agreement than was asked for" in cases
    assert (
        f"/projects/{project.pk}/publications/{made.pk}"
        in client.get(f"/projects/{project.pk}/answers").content.decode()
    )


def test_a_publication_keeps_its_base_when_the_project_grows(project, team):
    made = publish.publish(team.researcher, project)
    shown = ApiClient(team.reviewer).get(f"/projects/{project.pk}/publications/{made.pk}").json()
    record = Record.model_validate({"key": "more", "prompt": [{"role": "user", "content": "One more?"}]})
    growing.grow(team.researcher, project, [record], "tried")
    assert project.version.number > shown["base"] == 1
    assert ApiClient(team.reviewer).get(f"/projects/{project.pk}/publications/{made.pk}").json() == shown
    page = browser(team.reviewer).get(f"/projects/{project.pk}/publications/{made.pk}").content.decode()
    assert "built on version 1" in page


def test_who_may_see_a_publication(project, team):
    made = publish.publish(team.researcher, project)
    for path in (f"/projects/{project.pk}/publications", f"/projects/{project.pk}/publications/{made.pk}"):
        assert ApiClient(team.reviewer).get(path).status_code == 200
        assert ApiClient(team.annotator).get(path).status_code == 403
        assert ApiClient(team.outsider).get(path).status_code == 404
    other = make_project(team, "rating", n=1, scales=[{"name": "clarity"}])
    assert ApiClient(team.owner).get(f"/projects/{other.pk}/publications/{made.pk}").status_code == 404
    assert browser(team.owner).get(f"/projects/{other.pk}/publications/{made.pk}").status_code == 404


def test_cases_do_not_cost_a_query_each(project, team, django_assert_max_num_queries):
    with django_assert_max_num_queries(90):
        publish.publish(team.researcher, project, publish.Choice(what="answers"))


def test_how_a_published_version_was_annotated_is_told_without_names(project, team):
    made = publish.publish(team.researcher, project).version
    (told,) = annotated.annotated_projects(made, data_card.line(made))
    assert (told.project, told.people, told.tasks, told.answers) == (project.name, 2, 8, 15)
    assert (told.least, told.most) == (1, 2) and told.suggested == 0 and told.guidelines == (1,)
    assert told.first <= told.last
    assert annotated.annotated_projects(project.version, data_card.line(project.version)) == []


def test_gold_answers_are_no_part_of_what_is_told(project):
    task = project.tasks.order_by("rank").first()
    task.gold, task.overlap = {"strength": 2}, None
    task.save()
    (told,) = data_description.described(project.version, [project.pk])
    assert (told.tasks, told.answers) == (7, 13)


def test_a_project_of_another_workspace_tells_nothing(project, team):
    dataset = Dataset.objects.create(workspace=team.outsider.workspace, name="d")
    theirs = DatasetVersion.objects.create(dataset=dataset, number=1, lineage={})
    assert data_description.described(theirs, [project.pk]) == []
