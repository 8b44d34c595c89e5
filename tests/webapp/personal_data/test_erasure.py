"""An account is erased: the person is removed from every table, and their answers are unchanged."""

import json
from dataclasses import replace

import pytest
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.db import connection
from django.test import Client

from tests.concurrency import concurrently
from tests.team import ApiClient, browser, make_team
from tests.webapp.annotation.answers import annotators, answer, make_project, preference
from tests.webapp.annotation.publishing.test_answers import published, text
from tests.webapp.test_api_queries import a_run
from tests.webapp.test_what_annotators_see import working
from webapp.accounts.members.services import enter, invite, remove_member
from webapp.accounts.models import ApiToken, Membership, Proof, Role, SignedIn, User
from webapp.accounts.profile.services import set_password
from webapp.accounts.sign_in.services import create_sign_in_link
from webapp.accounts.tokens.services import create_token
from webapp.annotation.agreement import refresh
from webapp.annotation.agreement.coefficients import measure
from webapp.annotation.agreement.raters import raters
from webapp.annotation.models import AgreementReport, Answer, Assignment, Comment, Participant, Task
from webapp.annotation.people import queries as people
from webapp.annotation.publishing import services as publish
from webapp.annotation.review import services as review
from webapp.core.auditing import chain
from webapp.core.models import AuditEntry
from webapp.core.problems import Conflict
from webapp.experiments.models import Run
from webapp.personal_data import erasing, services
from webapp.personal_data.data_inventory import HOLDINGS, Erasure
from webapp.personal_data.erasing import erase

from .test_exports import ways

pytestmark = pytest.mark.django_db
PASSWORD = "quartz violin meadow"
IMPORTED = [{"a": "r1", "b": "r2", "strength": 1, "rater": "old"}]


@pytest.fixture
def judged(team):
    """(project, the person who goes, the person who stays): both have answered, and their answers are measured."""
    made = make_project(team, n=6, preferences=IMPORTED)
    one, two = annotators(team, made)
    for task, strengths in zip(made.tasks.order_by("rank"), [(2, 2)] * 4 + [(-1, 1), (1, -2)], strict=True):
        answer(task, one, preference(strengths[0]))
        answer(task, two, preference(strengths[1]))
    refresh.bring_up_to_date(made)
    return made, one, two


def numbers(body: dict) -> dict:
    """A report without the names of the people in its pairs."""
    return json.loads(json.dumps({**body, "fields": [{**each, "pairs": None} for each in body["fields"]]}))


def everything(but: tuple[str, ...] = ()) -> dict[str, str]:
    """{table: all rows}"""
    with connection.cursor() as cursor:
        tables = [name for name in connection.introspection.table_names(cursor) if name not in but]
        found = {}
        for name in tables:
            cursor.execute(f"SELECT coalesce(string_agg(row::text, chr(10)), '') FROM \"{name}\" row")  # noqa: S608
            found[name] = cursor.fetchone()[0]
    return found


def test_every_model_that_names_people_says_what_an_erasure_does_with_it():
    """The rules also hold: an emptied field may be empty, a kept row is moved, and everything else is deleted with the account."""
    by_way = {f"{each.model}.{each.way}": each for each in HOLDINGS}
    assert ways() - set(by_way) == {"accounts.Workspace.members"}
    for way in ways() & set(by_way):
        field = by_way[way].source._meta.get_field(way.rpartition(".")[2])
        action, fate = field.remote_field.on_delete.__name__, by_way[way].erasure
        fits = {
            "SET_NULL": set(Erasure),
            "CASCADE": {Erasure.DELETED, Erasure.PSEUDONYM},
            "PROTECT": {Erasure.PSEUDONYM},
        }
        assert fate in fits[action], way
        assert fate != Erasure.LOGGED or way == "core.AuditEntry.actor"


def test_agreement_publications_and_numbers_of_annotators_stay(judged, team):
    project, one, two = judged
    before, report = publish.publish(team.researcher, project), AgreementReport.objects.get(project=project)
    digest, lines, known = before.version.digest, published(before.version), raters(project)
    erase(one.user, team.owner.user)
    after = AgreementReport.objects.get(project=project)
    assert numbers(after.body) == numbers(report.body) == numbers(measure(project))
    pseudonym = User.objects.get(erased=True)
    assert set(after.people) == {str(pseudonym.pk), str(two.user_id)}
    assert after.people[str(pseudonym.pk)] == report.people[str(one.user_id)]
    before.version.refresh_from_db()
    assert before.version.digest == digest and published(before.version) == lines
    assert publish.publish(team.researcher, project).version == before.version
    answers = publish.Choice(what="answers")
    assert {
        p["rater"]
        for row in published(publish.publish(team.researcher, project, answers).version).values()
        for p in row["preferences"]
    } == {f"annotator-{number}@project-{project.pk}" for number in (1, 2)}
    assert raters(project)[pseudonym.pk].number == known[one.user_id].number
    assert raters(project)[two.user_id] == known[two.user_id]


def test_nothing_of_the_person_is_left_in_any_table_but_the_audit_log(team, django_capture_on_commit_callbacks):
    project = working(team, "pairwise")
    user = team.annotator.user
    publish.publish(team.researcher, project, publish.Choice(what="answers"))
    set_password(user, PASSWORD)
    Client().post("/sign-in", {"email": user.email, "password": "wrong"})
    browser(team.annotator).get("/")
    create_token(team.annotator, "nightly")
    create_sign_in_link(user)
    Authenticator.objects.create(user=user, type="totp", data={"secret": "x"})
    SocialAccount.objects.create(user=user, provider="company", uid="u-17", extra_data={"userinfo": {"name": "Anna"}})
    invite(team.outsider, user.email, "annotator")
    review.comment(team.annotator, Task.objects.first(), "remark", "What is clear?")
    services.carry_out(services.ask(user).pk)
    file = services.path_of(user.data_exports.get())
    User.objects.filter(pk=user.pk).update(proof=Proof.MAIL)
    elsewhere = enter(team.outsider.workspace, User.objects.get(pk=user.pk), Role.ANNOTATOR)
    remove_member(team.outsider, elsewhere)
    counts = [model.objects.count() for model in (Assignment, Answer, Comment, Participant)]
    with django_capture_on_commit_callbacks(execute=True):
        erase(user, team.owner.user)
    assert not file.exists()
    for table, rows in everything(but=("core_auditentry",)).items():
        assert "anna@" not in rows and "Anna" not in rows and "u-17" not in rows, table
    assert counts == [model.objects.count() for model in (Assignment, Answer, Comment, Participant)]
    assert not User.objects.filter(pk=user.pk).exists()
    assert [model.objects.filter(user_id=user.pk).count() for model in (ApiToken, SignedIn, Membership)] == [0, 0, 0]


def test_no_row_leads_back_to_the_account(judged, team):
    """The audit log has the old id beside addresses. So no other table may have the old id."""
    project, one, _ = judged
    User.objects.filter(pk=one.user_id).update(email="gone@example.org")
    erase(one.user, team.owner.user)
    for holding in HOLDINGS:
        if holding.direct:
            assert not holding.source._base_manager.filter(**{f"{holding.way}_id": one.user_id}).exists(), holding.model
    pseudonym = User.objects.get(erased=True)
    assert pseudonym.date_joined == erasing.LONG_AGO and not pseudonym.is_active and not pseudonym.has_usable_password()
    assert Participant.objects.get(user=pseudonym).created_at.hour == 0
    body = ApiClient(team.researcher).get(f"/projects/{project.pk}/answers/export", names="true")
    told = text(body)
    assert "Erased account" in told and "gone@" not in told
    page = browser(team.researcher).get(f"/projects/{project.pk}/people").content.decode()
    assert "Erased account" in page and "touchstone.invalid" not in page


def test_people_can_be_measured_while_somebody_goes(judged, team):
    """A measurement that began before the erasure writes the old id after it. The page leaves the id out until the next measurement."""
    project, one, two = judged
    stale = AgreementReport.objects.get(project=project).people
    erase(one.user, team.owner.user)
    AgreementReport.objects.filter(project=project).update(people=stale)
    assert {each.user.pk for each in people.people(project)} == {User.objects.get(erased=True).pk, two.user_id}


def test_the_audit_log_keeps_its_entries_and_its_chain(team):
    create_token(team.annotator, "nightly")
    entries = AuditEntry.objects.filter(actor=team.annotator.user)
    kept = list(entries.values_list("pk", flat=True))
    erase(team.annotator.user, team.annotator.user)
    assert set(AuditEntry.objects.filter(pk__in=kept).values_list("actor", flat=True)) == {None} and kept
    told = AuditEntry.objects.get(action="account.erased")
    assert (told.actor, told.detail, told.object_id) == (None, {"by": "themselves"}, team.annotator.user_id)
    chain.seal()
    assert chain.verify().problems == []
    page = browser(team.owner).get("/settings/audit", {"action": "token.created"}).content.decode()
    assert "erased account" in page and "anna" not in page


@pytest.mark.parametrize(
    "asked",
    [
        "asked it to stop",
        "asked it to stop at once",
        "asked it to pause. It saves and gives up its present step, which may be about 6 min of work",
    ],
)
def test_sentences_of_the_program_lose_the_name(team, asked):
    run, _ = a_run(team)
    Run.objects.filter(pk=run).update(state_reason=f"Rosa {asked}")
    erase(team.researcher.user, team.owner.user)
    assert Run.objects.get(pk=run).state_reason == f"Somebody {asked}"


def test_the_last_owner_and_the_last_administrator_are_told_what_to_do_first(team):
    owner = team.owner.user
    with pytest.raises(Conflict, match="only owner of Lab") as refused:
        erase(owner, owner)
    assert "last administrator" in str(refused.value) and User.objects.filter(pk=owner.pk).exists()
    page = browser(team.owner).get("/settings/data").content.decode()
    assert "only owner of Lab" in page and "disabled" in page
    Membership.objects.filter(pk=team.researcher.pk).update(role=Role.OWNER)
    User.objects.filter(pk=team.researcher.user_id).update(is_administrator=True)
    erase(owner, owner)
    assert not User.objects.filter(pk=owner.pk).exists()


@pytest.mark.django_db(transaction=True)
def test_of_two_owners_who_go_at_once_one_stays():
    team = make_team()
    second = Membership.objects.create(
        user=User.objects.create_user("zoe@example.org", proof=Proof.SERVER), workspace=team.workspace, role=Role.OWNER
    )
    User.objects.filter(pk__in=(second.user_id, team.outsider.user_id)).update(is_administrator=True)
    came = concurrently([lambda who=who: erase(who.user, who.user) for who in (team.owner, second)])
    assert sorted(type(each).__name__ for each in came) == ["Conflict", "NoneType"]
    assert Membership.objects.filter(workspace=team.workspace, role=Role.OWNER).count() == 1


def test_people_close_their_own_account_after_a_question_and_their_password(team):
    set_password(team.annotator.user, PASSWORD)
    page = Client()
    page.post("/sign-in", {"email": team.annotator.user.email, "password": PASSWORD})
    asked = page.post("/settings/data/erase")
    assert asked.status_code == 200 and b"Keep it" in asked.content
    confirm = page.post("/settings/data/erase", {"sure": "1"})
    assert "/settings/second-factor/confirm" in confirm.headers["Location"]
    assert User.objects.filter(pk=team.annotator.user_id).exists()
    wrong = page.post(confirm.headers["Location"], {"password": "wrong"})
    assert wrong.status_code == 200 and User.objects.filter(pk=team.annotator.user_id).exists()
    done = page.post(confirm.headers["Location"], {"password": PASSWORD, "next": "/settings/data/erase"})
    assert "Your account is erased" in done.content.decode()
    assert not User.objects.filter(pk=team.annotator.user_id).exists()
    assert page.get("/settings/profile").status_code == 302


def test_an_administrator_erases_who_has_asked_for_it(team, as_owner, as_researcher):
    path = f"/installation/people/{team.annotator.user_id}/erase"
    assert as_researcher.post(path, {"sure": "1"}).status_code == 403
    assert b"Keep it" in as_owner.post(path).content and User.objects.filter(pk=team.annotator.user_id).exists()
    assert as_owner.post(path, {"sure": "1"}).status_code == 302
    assert not User.objects.filter(pk=team.annotator.user_id).exists()
    assert AuditEntry.objects.get(action="account.erased").actor == team.owner.user
    working(team := make_second(team), "pairwise")
    erase(team.annotator.user, team.owner.user)
    assert "Erased account" not in as_owner.get("/installation/people").content.decode()
    assert as_owner.get(f"/installation/people/{User.objects.get(erased=True).pk}/data").status_code == 404


def make_second(team):
    """The team and another annotator."""
    user = User.objects.create_user("nia@example.org", name="Nia", proof=Proof.SERVER)
    return replace(team, annotator=Membership.objects.create(user=user, workspace=team.workspace, role=Role.ANNOTATOR))
