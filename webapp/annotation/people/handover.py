"""Moves a person's answers to another account: see `webapp.personal_data.erasing`, which moves the rows themselves."""

from django.db import connection
from django.db.models.functions import TruncDay

from webapp.accounts.models import User
from webapp.annotation.models import AgreementReport, Assignment, Participant


def clean(person: User) -> None:
    """Removes drafts, which were never submitted, keys, and the exact moment of joining, which invitations and the audit log have as
    well."""
    Assignment.objects.filter(user=person).update(draft=None)
    Participant.objects.filter(user=person).update(keys={}, created_at=TruncDay("created_at"))


def unname_decider(person: User) -> None:
    """Takes the person's id out of decisions that others have replaced since: each is kept as JSON in the decision that replaced it."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE annotation_resolution SET trace = jsonb_set(trace, '{0,replaced,by}', 'null')"
            " WHERE trace #> '{0,replaced,by}' = to_jsonb(%s::bigint)",
            [person.pk],
        )


def renumber(old: int, new: int) -> None:
    """Replaces the person's id in reports, which name raters by their ids in JSON, and in messages to webhooks."""
    reports = AgreementReport.objects.select_for_update(of=("self",)).filter(project__participants__user_id=new)
    for report in reports:
        for part in [*(report.body or {}).get("fields", ()), (report.body or {}).get("items") or {}]:
            for pair in part.get("pairs", ()):
                pair["raters"] = [new if user == old else user for user in pair["raters"]]
        people = {str(new) if user == str(old) else user: kept for user, kept in (report.people or {}).items()}
        rows = AgreementReport.objects.filter(pk=report.pk)
        rows.update(body=report.body, people=report.people and people)
        rows.filter(through__lt=0).update(through=-1)  # a measurement under way has read the old id
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE webhooks_delivery SET payload = jsonb_set(payload, '{annotator}', to_jsonb(%s::bigint))"
            " WHERE payload->'annotator' = to_jsonb(%s::bigint)",
            [new, old],
        )
