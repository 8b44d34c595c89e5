"""Setting up, opening and changing projects."""

import threading

import pytest
from django.db import connection

from tests.webapp.annotation.conftest import make_version
from tests.webapp.webhooks.hooks import announced_events, listen
from webapp.annotation.models import Participant, Project, ProjectInvite, Task
from webapp.annotation.people import services as participants
from webapp.annotation.projects import services as projects
from webapp.core.models import AuditEntry
from webapp.core.problems import Conflict, Invalid

pytestmark = pytest.mark.django_db


def refused(call, *args, **options) -> dict[str, str]:
    with pytest.raises(Invalid) as caught:
        call(*args, **options)
    return caught.value.fields


def test_a_new_project_freezes_its_version_and_stays_a_draft(team, version):
    project = projects.create(team.researcher, name=" Which  is better? ", kind="pairwise", dataset=version)
    version.refresh_from_db()
    assert (project.state, project.name, version.state) == ("draft", "Which is better?", "frozen")
    assert project.guidelines.get().number == 1
    assert AuditEntry.objects.filter(action="project.created", object_id=project.pk).exists()


def test_the_worker_is_told_of_a_new_project_after_the_commit(
    team, version, monkeypatch, django_capture_on_commit_callbacks
):
    sent = []
    monkeypatch.setattr("webapp.core.tasks._send", lambda name, args: sent.append((name, args)))
    with django_capture_on_commit_callbacks(execute=True):
        project = projects.create(team.researcher, name="Colours", kind="pairwise", dataset=version)
        assert sent == []
    assert sent == [("workers.annotation.make_tasks", (project.pk,))]


def test_every_wrong_field_is_told_at_once(team, version):
    fields = refused(
        projects.create,
        team.researcher,
        name="  ",
        kind="rating",
        dataset=version,
        overlap=0,
        strategy="luck",
        settings={"lease_minutes": 0, "scales": [{"name": "x", "low": 5, "high": 1}], "unknown": 1},
    )
    assert set(fields) == {
        *("name", "overlap", "strategy", "settings.lease_minutes", "settings.scales.0", "settings.unknown")
    }
    assert not Project.objects.exists()
    version.refresh_from_db()
    assert version.state == "draft"


def test_a_version_without_what_the_kind_needs_is_refused_in_words(team):
    bare = make_version(team.owner, name="bare", responses=0, rubrics=False, preferences=False)
    fields = refused(projects.create, team.researcher, name="Grade", kind="grading", dataset=bare)
    assert fields["dataset"] == "bare v1 has no rubrics and no responses, which criterion grading needs"


def test_a_rating_project_needs_a_scale_and_names_occur_once(team, version):
    make = {"name": "Rate", "kind": "rating", "dataset": version}
    assert "settings.scales" in refused(projects.create, team.researcher, **make)
    twice = {"scales": [{"name": "Help"}, {"name": "Help"}]}
    assert "settings.scales" in refused(projects.create, team.researcher, **make, settings=twice)


def test_one_key_cannot_do_two_things(team, version):
    settings = {"keys": {"skip": "x", "flag": "x"}}
    fields = refused(projects.create, team.researcher, name="Keys", kind="pairwise", dataset=version, settings=settings)
    assert fields == {"settings.keys.skip": "x already does something else"}


def test_a_name_is_taken_once_per_workspace(team, version, make_project):
    make_project(name="Colours")
    fields = refused(projects.create, team.researcher, name="Colours", kind="pairwise", dataset=version)
    assert fields == {"name": "another project of this workspace has this name"}
    other = make_version(team.outsider)
    assert projects.create(team.outsider, name="Colours", kind="pairwise", dataset=other).pk


@pytest.mark.parametrize(
    ("way", "allowed"),
    [
        (("open",), True),
        (("open", "paused", "open", "closed", "open"), True),
        (("paused",), False),
        (("closed", "paused"), False),
    ],
)
def test_states_move_only_along_their_ways(team, make_project, way, allowed):
    project = make_project(open=False)
    for state in way[:-1]:
        projects.set_state(team.researcher, project, state)
    if allowed:
        assert projects.set_state(team.researcher, project, way[-1]).state == way[-1]
    else:
        with pytest.raises(Conflict):
            projects.set_state(team.researcher, project, way[-1])


def test_asking_twice_for_a_state_writes_one_audit_entry(team, make_project):
    project = make_project(open=False)
    for _ in range(2):
        projects.set_state(team.researcher, Project.objects.get(pk=project.pk), "open")
    assert AuditEntry.objects.filter(action="project.open").count() == 1


def test_changed_settings_are_laid_over_the_present_ones(team, make_project):
    project = make_project(settings={"reasons": "required", "gold_every": 5})
    projects.update(team.researcher, project, settings={"gold_every": 9})
    assert (project.settings["reasons"], project.settings["gold_every"]) == ("required", 9)
    assert refused(projects.update, team.researcher, project, settings={"gold_every": -1}, name="") == {
        "settings.gold_every": "must be at least 0",
        "name": "give it a name",
    }


def test_another_overlap_gives_tasks_their_seats_and_takes_none_that_is_taken(team, make_project, version):
    project = make_project(overlap=2)
    # a worker is still making the tasks
    assert "overlap" in refused(projects.update, team.researcher, project, overlap=1)
    Project.objects.update(tasks_made=True)
    project.refresh_from_db()
    example = version.members.first().example
    at = {"project": project, "example": example}
    free = Task.objects.create(**at, subject={"n": 1}, rank=1, overlap=2)
    done = Task.objects.create(
        **at, subject={"n": 2}, rank=2, overlap=2, taken=2, done=2, completed_at=project.created_at
    )
    gold = Task.objects.create(**at, subject={"n": 3}, rank=3, overlap=None, taken=7, gold={})
    projects.update(team.researcher, project, overlap=1)
    overlaps = dict(Task.objects.values_list("id", "overlap"))
    assert overlaps == {free.pk: 1, done.pk: 2, gold.pk: None}
    projects.update(team.researcher, project, overlap=3)
    done.refresh_from_db()
    assert (done.overlap, done.completed_at) == (3, None)
    listen(team.owner)
    projects.update(team.researcher, project, overlap=2)
    done.refresh_from_db()
    assert (done.overlap, done.completed_at is None) == (2, False)
    # for tasks that become complete by this change alone
    assert announced_events() == [("task.completed", {"task": done.pk, "project": project.pk})]
    projects.update(team.researcher, project, overlap=1)
    assert len(announced_events()) == 1
    Task.objects.filter(pk=free.pk).update(taken=1, done=1, overlap=2, completed_at=None)
    projects.update(team.researcher, project, overlap=2)
    projects.update(team.researcher, project, overlap=1)
    assert [event for event, _ in announced_events()[1:]] == ["task.completed", "project.complete"]


def test_guidelines_get_a_number_each_and_the_same_text_none(team, make_project):
    project = make_project(guidelines="Be fair.")
    assert projects.new_guidelines(team.researcher, project, "Be fair.\r\n").number == 1
    assert projects.new_guidelines(team.researcher, project, "Be fair and quick.").number == 2
    assert project.guidelines.count() == 2


def test_only_members_become_participants(team, make_project):
    project = make_project()
    participants.add_participant(team.researcher, project, team.annotator.user)
    participants.add_participant(team.researcher, project, team.annotator.user)
    assert Participant.objects.get().user == team.annotator.user
    assert "user" in refused(participants.add_participant, team.researcher, project, team.outsider.user)


class TestInvitations:
    def test_a_newcomer_joins_workspace_and_project(self, team, make_project):
        project = make_project()
        _, secret = participants.invite(team.researcher, project)
        row = participants.sign_up(secret, email="New@example.com", name="Nora", password="a long password")
        assert row.user.memberships.get().role == "annotator"
        assert row.user.email == "new@example.com" and row.user.check_password("a long password")

    def test_a_member_keeps_the_role_they_have(self, team, make_project):
        project = make_project()
        _, secret = participants.invite(team.researcher, project)
        participants.join(team.reviewer.user, secret)
        team.reviewer.refresh_from_db()
        assert team.reviewer.role == "reviewer"

    def test_coming_twice_uses_the_link_once(self, team, make_project):
        invite, secret = participants.invite(team.researcher, make_project(), uses=2)
        for _ in range(3):
            participants.join(team.annotator.user, secret)
        invite.refresh_from_db()
        assert invite.uses_left == 1

    def test_the_link_is_kept_as_a_digest_only(self, team, make_project):
        invite, secret = participants.invite(team.researcher, make_project())
        assert secret not in str(ProjectInvite.objects.values().get(pk=invite.pk))

    def test_a_spent_revoked_expired_or_wrong_link_opens_nothing(self, team, make_project):
        project = make_project()
        spent, revoked, expired = (participants.invite(team.researcher, project) for _ in range(3))
        ProjectInvite.objects.filter(pk=spent[0].pk).update(uses_left=0)
        participants.revoke_invite(team.researcher, revoked[0])
        ProjectInvite.objects.filter(pk=expired[0].pk).update(expires_at=project.created_at)
        for secret in (spent[1], revoked[1], expired[1], "guess"):
            assert participants.open_invite(secret) is None
            with pytest.raises(Conflict):
                participants.join(team.annotator.user, secret)
        assert not Participant.objects.exists()

    def test_a_spent_link_leaves_no_account_behind(self, team, make_project):
        invite, secret = participants.invite(team.researcher, make_project())
        participants.revoke_invite(team.researcher, invite)
        with pytest.raises(Conflict):
            participants.sign_up(secret, email="late@example.com", name="Late", password="a long password")
        assert not team.owner.user.__class__.objects.filter(email="late@example.com").exists()

    def test_a_known_address_must_sign_in(self, team, make_project):
        _, secret = participants.invite(team.researcher, make_project())
        email = team.outsider.user.email.upper()
        assert "email" in refused(participants.sign_up, secret, email=email, name="Otto", password="x" * 12)

    def test_bounds(self, team, make_project):
        assert set(refused(participants.invite, team.researcher, make_project(), uses=0, days=9999)) == {"uses", "days"}


@pytest.mark.django_db(transaction=True)
def test_of_many_who_follow_a_link_at_once_only_so_many_get_in(team, make_project):
    """Conditional updates decide, not the read before them."""
    project = make_project()
    _, secret = participants.invite(team.researcher, project, uses=3)
    people = [team.owner.user.__class__.objects.create_user(f"p{i}@example.com") for i in range(12)]
    barrier, outcomes = threading.Barrier(len(people)), []

    def come(user):
        barrier.wait()
        try:
            participants.join(user, secret)
            outcomes.append(True)
        except Conflict:
            outcomes.append(False)
        finally:
            connection.close()

    threads = [threading.Thread(target=come, args=(user,)) for user in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (outcomes.count(True), Participant.objects.count()) == (3, 3)
