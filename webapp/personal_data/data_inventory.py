"""Lists every table with data about a person: what an export contains of it, and what an erasure does with it.

One table for both. A test compares it with all foreign keys to `User` that the models have.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from django.apps import apps
from django.db.models import F, Model, QuerySet

from webapp.accounts.models import User


class Erasure(StrEnum):
    """The fate of the rows when the account is erased."""

    DELETED = "is deleted"
    PSEUDONYM = "stays, under a pseudonym"
    EMPTIED = "stays, and names nobody"
    LOGGED = "stays as it was written, and the person is no longer named as who did it"


@dataclass(frozen=True)
class Holding:
    """Rows of `model` that `way` (a look-up of the ORM) leads to from the person's `by`.

    `file` is the name in the export; if it is empty, `about` is the reason. `only` names the columns that are exported,
    `hide` those that are not; `also` adds {name: look-up} of what explains a row.
    """

    model: str
    way: str
    file: str
    about: str
    erasure: Erasure
    by: str = "pk"
    only: tuple[str, ...] = ()
    hide: tuple[str, ...] = ()
    also: Mapping[str, str] = field(default_factory=dict)
    where: Mapping[str, Any] = field(default_factory=dict)

    @property
    def direct(self) -> bool:
        """Whether `way` is a column that names the person."""
        return self.by == "pk" and self.source is not User and not self.where and "__" not in self.way

    @property
    def source(self) -> type[Model]:
        found: type[Model] = apps.get_model(self.model)
        return found

    def rows(self, user: User) -> "QuerySet[Any]":
        """All of the person's rows, by id; hidden ones (half-made, deleted) as well.

        A person who types an address has not shown that it is theirs, so rows that are found only by an address need a verified one.
        """
        if self.by == "email" and not user.verified:
            return self.source._base_manager.none()
        rows: QuerySet[Any] = self.source._base_manager.filter(**{self.way: getattr(user, self.by)}, **self.where)
        return rows.order_by("pk")

    def values(self, user: User) -> "QuerySet[Any, dict[str, Any]]":
        """The person's rows, each as {column: value}."""
        names = [each.attname for each in self.source._meta.concrete_fields if each.name not in self.hide]
        names = [name for name in names if name in self.only] if self.only else names
        return self.rows(user).values(*names, **{name: F(path) for name, path in self.also.items()})


MADE = ("id", "name", "title", "number", "kind", "recipe", "state", "file_name", "dataset_name", "created_at")
IN_WORKSPACE = {"workspace_name": "workspace__name"}


def _made(model: str, what: str, way: str = "created_by") -> Holding:
    """Something of the workspace that the person has made: the export says that they did, not all that is in it."""
    file = f"made/{model.rpartition('.')[2]}"
    return Holding(model, way, file, f"{what} that you have made.", Erasure.EMPTIED, only=MADE)


GONE, KEPT, LOGGED = Erasure.DELETED, Erasure.PSEUDONYM, Erasure.LOGGED
HOLDINGS = (
    Holding("accounts.User", "pk", "profile", "Your account.", GONE, hide=("password",)),
    Holding(
        "accounts.Membership", "user", "memberships", "Workspaces that you belong to.", GONE, also=IN_WORKSPACE
    ),
    Holding("accounts.Removal", "user", "removals", "Workspaces that removed you.", GONE, also=IN_WORKSPACE),
    Holding(
        "accounts.Invite", "email", "invitations", "Invitations to your address.", GONE, by="email", hide=("digest",),
        also=IN_WORKSPACE,
    ),
    Holding("accounts.SignedIn", "user", "sessions", "Where you are signed in.", GONE, hide=("session_key",)),
    Holding("accounts.SignInLink", "user", "sign_in_links", "Links that sign you in once.", GONE, hide=("digest",)),
    Holding("accounts.AddressCheck", "user", "address_checks", "Links mailed to your address.", GONE, hide=("digest",)),
    Holding("accounts.ApiToken", "user", "tokens", "Your API tokens.", GONE, hide=("digest",), also=IN_WORKSPACE),
    Holding("mfa.Authenticator", "user", "second_factors", "Your second factors, without their secrets.", GONE, hide=("data",)),
    Holding("socialaccount.SocialAccount", "user", "company_sign_in", "Data from your company's sign-in.", GONE),
    Holding("identity.DirectoryPerson", "user", "company_directory", "Data from your company's directory.", GONE),
    Holding("account.EmailAddress", "user", "sign_in_addresses", "Addresses of the sign-in library, which stores none.", GONE),
    Holding(
        "axes.AccessAttempt", "username", "failed_sign_ins", "Failed attempts to sign in with your address.", GONE, by="email",
        only=("id", "user_agent", "ip_address", "attempt_time", "failures_since_start"),
    ),
    Holding(
        "personal_data.DataExport", "user", "data_exports", "Files like this one.", GONE,
        only=("id", "state", "size", "rows", "created_at", "finished_at", "expires_at"),
    ),
    Holding(
        "personal_data.UnusedAccount", "user", "unused_account", "That your account is announced to be erased.", GONE,
        only=("id", "created_at"),
    ),
    Holding(
        "annotation.Participant", "user", "participations", "Projects that you work in.", KEPT,
        also={"project_name": "project__name"},
    ),
    Holding(
        "annotation.Assignment", "user", "assignments", "Tasks that you were given, and your drafts.", KEPT, hide=("order",)
    ),
    Holding(
        "annotation.Answer", "assignment__user", "answers",
        "Your judgements and ratings, with all revisions, in the letters that you saw. Which tasks have a known answer is left out.",
        KEPT, hide=("gold_right", "gold_detail", "suggested_by"), also={"task_id": "assignment__task_id"},
    ),
    Holding("annotation.Comment", "author", "comments", "Your remarks about tasks.", KEPT),
    Holding(
        "annotation.Resolution", "decided_by", "decisions", "Your decisions about answers that differed.", Erasure.EMPTIED
    ),
    Holding(
        "annotation.ProjectInvite", "email", "project_invitations", "Invitations of your address into a project.", GONE,
        by="email", hide=("digest", "created_by"), also={"project_name": "project__name"},
    ),
    Holding("core.AuditEntry", "actor", "audit_log", "Your actions in the audit log.", LOGGED, also=IN_WORKSPACE),
    Holding(
        "core.AuditEntry", "object_id", "audit_log_about", "Entries of the audit log about your account.", LOGGED,
        where={"object_type": "user"}, hide=("actor", "address", "token"), also=IN_WORKSPACE,
    ),
    Holding("datasets.SavedView", "created_by", "saved_views", "Filters that you saved.", Erasure.EMPTIED),
    Holding(
        "playground.TriedScore", "created_by", "tried_answers", "Answers that you had scored on the page Try it.", GONE
    ),
    Holding(
        "accounts.Invite", "created_by", "made/Invite", "Invitations that you made. Whom they are for is left out.",
        Erasure.EMPTIED, only=("id", "role", "created_at", "expires_at", "accepted_at"),
    ),
    Holding(
        "annotation.ProjectInvite", "created_by", "made/ProjectInvite", "Links into projects that you made.",
        Erasure.EMPTIED, only=("id", "project_id", "created_at", "expires_at", "revoked_at"),
    ),
    Holding(
        "annotation.Publication", "made_by", "made/Publication", "Publications that you made.", Erasure.EMPTIED,
        only=("id", "project_id", "version_id", "created_at"),
    ),
    Holding(
        "identity.DirectoryKey", "created_by", "made/DirectoryKey", "Keys of directories that you made.", Erasure.EMPTIED,
        only=("id", "prefix", "created_at", "last_used_at", "revoked_at"),
    ),
    _made("annotation.Project", "Annotation projects"),
    _made("annotation.Guidelines", "Versions of guidelines"),
    _made("datasets.CurationJob", "Curation jobs"),
    _made("datasets.ImportJob", "Imports"),
    _made("inference.Endpoint", "Endpoints"),
    _made("inference.ModelPromotion", "Moves of aliases of models, and changes of their stages"),
    _made("weights.WeightsJob", "Jobs with weights"),
    _made("judging.Judge", "Judges"),
    _made("judging.JudgeVersion", "Versions of judges"),
    _made("judging.Trial", "Trials of judges"),
    _made("evaluation.Recording", "Recordings"),
    _made("evaluation.Evaluation", "Evaluations"),
    _made("experiments.Run", "Runs"),
    _made("experiments.ClaimStudy", "Studies of claims"),
    _made("experiments.Sweep", "Sweeps"),
    _made("experiments.ChainStep", "Steps of chains"),
    _made("experiments.RunRepeat", "Repeated runs"),
    Holding(
        "experiments.TokenNote", "created_by", "notes_on_responses", "Your notes on tokens of sampled responses.", Erasure.EMPTIED,
        hide=("launch_key", "launch_digest"),
    ),
    Holding(
        "usage.WorkSpan", "person", "work_spans", "When the processes of your runs and jobs ran.", Erasure.EMPTIED, also=IN_WORKSPACE
    ),
    Holding(
        "usage.MonthlyUse", "person", "monthly_use", "Costs of models behind endpoints for your work, by month.", Erasure.EMPTIED,
        also=IN_WORKSPACE,
    ),
    Holding("experiments.RunStar", "user", "starred_runs", "Runs that you have starred.", GONE),
    Holding("experiments.PinnedCharts", "user", "pinned_charts", "Charts of runs that you have pinned.", GONE),
    _made("experiments.CustomChart", "Charts of runs"),
    Holding(
        "experiments.RunViewChoice", "user", "run_table_defaults", "The saved view that your table of runs opens with.", GONE
    ),
    Holding(
        "experiments.ShareLink", "created_by", "share_links", "Links by which you have shared runs and reports.", GONE, hide=("digest",),
        also=IN_WORKSPACE,
    ),
    Holding("notices.Watch", "user", "watches", "Things that you have chosen to watch, or not to watch.", GONE),
    Holding("notices.NoticeSettings", "user", "notice_settings", "How you want to be told.", GONE),
    Holding(
        "notices.Letter", "user", "notices_by_mail", "Mails with notices that went to you.", GONE,
        only=("id", "state", "created_at", "sent_at"),
    ),
    Holding("notices.Notice", "user", "notices", "Notices about things that you watch.", GONE, also=IN_WORKSPACE),
    _made("experiments.RunView", "Saved views of runs"),
    _made("experiments.RunChange", "Changes of tags, groups and the archive of runs", "made_by"),
    _made("experiments.ReasonMatching", "Judgements whose reasons you matched", "made_by"),
    _made("reports.ReportPage", "Reports"),
    _made("reports.ReportPageVersion", "Versions of reports"),
    _made("webhooks.Webhook", "Webhooks"),
    _made("backups.Backup", "Backups"),
    _made("backups.BackupDrill", "Drills of backups"),
    Holding(
        "datasets.Dataset", "deleting_by", "", "Says who asked for a deletion for as long as it takes; the audit log keeps it.",
        Erasure.EMPTIED,
    ),
    Holding(
        "personal_data.DataExport", "asked_by", "", "Files about others, which an administrator asked for; the audit log says so.",
        Erasure.EMPTIED,
    ),
)  # fmt: skip
# ways to a person that do not have a column of their own
NO_ROWS = {"accounts.Workspace.members": "goes through Membership"}
