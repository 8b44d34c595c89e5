"""Judges and their versions."""

import pytest
from django.db import IntegrityError, transaction

from trainer.config.errors import ConfigInvalid
from webapp.core.models import AuditEntry
from webapp.core.problems import Conflict, Invalid
from webapp.inference.endpoints import services as endpoints
from webapp.judging.judges import services as judges
from webapp.judging.judges.services import begin_use, create_judge, fix_examples, new_version
from webapp.judging.models import JudgeVersion

pytestmark = pytest.mark.django_db
SPEC = {"kind": "criterion"}


@pytest.fixture
def recorded(team):
    return endpoints.create_endpoint(team.researcher, "recorded", name="tape")


@pytest.fixture
def judge(team, recorded):
    return create_judge(team.researcher, name=" Strict  judge ", spec=SPEC, endpoint=recorded).judge


def test_a_judge_begins_with_a_complete_version(team, judge):
    version = judge.versions.get()
    assert (judge.name, judge.kind, version.number) == ("Strict judge", "criterion", 1)
    assert version.spec["votes"] == 1 and "{{criterion}}" in version.spec["prompt"]
    assert {"judge.created", "judge.version_made"} <= set(AuditEntry.objects.values_list("action", flat=True))


def test_a_change_is_the_next_version_and_no_change_is_none(team, judge, recorded):
    second = new_version(team.researcher, judge, spec={**SPEC, "retries": 0}, endpoint=recorded, note=" fewer ")
    assert (second.number, second.note) == (2, "fewer")
    again = new_version(team.researcher, judge, spec=SPEC, endpoint=recorded)
    assert again.number == 1 and judge.versions.count() == 2


def test_another_endpoint_is_another_version(team, judge, recorded):
    other = endpoints.create_endpoint(team.researcher, "recorded", name="other tape")
    assert new_version(team.researcher, judge, spec=SPEC, endpoint=other).number == 2


def test_a_judge_keeps_its_kind(team, judge, recorded):
    with pytest.raises(Invalid) as refused:
        new_version(team.researcher, judge, spec={"kind": "likert"}, endpoint=recorded)
    assert "kind" in refused.value.fields


def test_names_are_taken_once_per_workspace(team, judge, recorded):
    with pytest.raises(Invalid) as refused:
        create_judge(team.researcher, name="Strict judge", spec=SPEC, endpoint=recorded)
    assert "name" in refused.value.fields
    other = create_judge(team.researcher, name="Other", spec=SPEC, endpoint=recorded).judge
    with pytest.raises(Invalid):
        judges.rename(team.researcher, other, "Strict judge")


def test_endpoints_of_others_and_archived_ones_are_refused(team, recorded):
    foreign = endpoints.create_endpoint(team.outsider, "recorded", name="theirs")
    with pytest.raises(Invalid):
        create_judge(team.researcher, name="x", spec=SPEC, endpoint=foreign)
    endpoints.archive(team.researcher, recorded)
    with pytest.raises(Conflict):
        create_judge(team.researcher, name="x", spec=SPEC, endpoint=recorded)


def test_a_spec_that_cannot_work_makes_no_judge(team, recorded):
    with pytest.raises(ConfigInvalid):
        create_judge(team.researcher, name="x", spec={**SPEC, "prompt": "Well?"}, endpoint=recorded)


@pytest.mark.parametrize("change", [{"spec": {}}, {"digest": "x"}, {"number": 9}, {"first_used_at": None}])
def test_the_database_keeps_a_version_that_is_in_use(judge, change):
    version = judge.versions.get()
    JudgeVersion.objects.filter(pk=version.pk).update(**{"note": "before use anything goes", **change})
    JudgeVersion.objects.filter(pk=version.pk).update(spec=version.spec, digest=version.digest, number=1)
    begin_use(version)
    with pytest.raises(IntegrityError, match="is in use and cannot change"), transaction.atomic():
        JudgeVersion.objects.filter(pk=version.pk).update(**change)
    JudgeVersion.objects.filter(pk=version.pk).update(note="a note may change")


def test_an_archived_judge_comes_back(team, judge):
    judges.archive(team.researcher, judge)
    judge.refresh_from_db()
    assert judge.archived_at is not None
    judges.restore(team.researcher, judge)
    judge.refresh_from_db()
    assert judge.archived_at is None


def test_fixed_examples_come_from_one_dataset_of_the_workspace(team, judge, import_rows):
    import_rows([{"key": "a", "prompt": [{"role": "user", "content": "?"}]}], name="one")
    import_rows([{"key": "b", "prompt": [{"role": "user", "content": "!"}]}], name="two")
    from webapp.datasets.models import Example

    one, two = Example.objects.order_by("key")
    fix_examples(team.researcher, judge, [one.pk, one.pk])
    assert judge.fixed_examples == [one.pk] and judge.fixed_dataset == one.dataset
    for wrong in ([], [one.pk, two.pk], [10**9], list(range(60))):
        with pytest.raises(Invalid) as refused:
            fix_examples(team.researcher, judge, wrong)
        assert "examples" in refused.value.fields
