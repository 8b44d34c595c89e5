"""The form of a run, filled in from a draft: it saves that draft, or launches it."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.db import transaction

from webapp.accounts.models import Membership

from ..lifecycle import utc_times
from ..models import Run
from . import checks, drafts
from .forms import RunForm
from .typed_limits import TypedLimits


@dataclass
class DraftForm(RunForm):
    draft: Run | None = None  # type: ignore[misc]  # the form of a new run edits none

    @classmethod
    def of_draft(cls, membership: Membership, run: Run) -> "DraftForm":
        """The form filled in as the draft `run` was saved."""
        kept = drafts.of_run(run)
        version = checks.version_of(membership, kept.dataset)
        return cls(
            membership,
            recipe=run.recipe,
            name=run.name,
            experiment=run.experiment.name,
            not_before=utc_times.field(run.not_before),
            retries=str(run.retries),
            limits=TypedLimits.of_run(run),
            dataset=f"{version.dataset_id}:{version.number}" if version else "",
            raw=kept.config,
            draft=run,
            forked_from=run.forked_from,
            start_step=run.start_step,
        )

    @classmethod
    def edited(cls, membership: Membership, post: Mapping[str, str], run: Run) -> "DraftForm":
        """The form as typed. A draft keeps its recipe, and the checkpoint from which it continues."""
        given = {**post, "recipe": run.recipe, "start_step": str(run.start_step)}
        form = cls.posted(membership, given, forked_from=run.forked_from)
        assert isinstance(form, DraftForm)  # noqa: S101  # made by its own class
        form.draft = run
        return form

    def _draft(self) -> Run:
        if self.draft is None:
            raise ValueError("choose first which draft it edits")
        return self.draft

    def _save(self) -> Run:
        return drafts.change(self.membership, self._draft(), drafts.RunDraft(**self._asked()))

    def _launch(self) -> Run:
        with transaction.atomic():  # what is launched is what the form shows, or the draft stays as it was
            return drafts.launch(self.membership, self._save())
