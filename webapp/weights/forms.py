from typing import Any

from django import forms

from webapp.accounts.models import Membership
from webapp.datasets.models import DatasetVersion
from webapp.inference.models import RegisteredModel
from webapp.inference.queries import models

from .models import WeightsJob

Kind = WeightsJob.Kind
KINDS = [
    (Kind.SCORE, "Scores of the responses, by a reward model"),
    (Kind.LOGPROBS, "Log-probabilities of the responses, under a model that writes"),
    (Kind.EMBED, "Embeddings of the texts, by the installed sentence model"),
]
RESOURCES = ("cpus", "gpus", "memory_gb")


class JobForm(forms.Form):
    """A form whose values the services check."""

    kind = forms.ChoiceField(choices=KINDS, label="Kind of job")
    model = forms.ModelChoiceField(
        RegisteredModel.objects.none(), required=False, help_text="Leave it empty for embeddings."
    )
    dataset_version = forms.ModelChoiceField(DatasetVersion.objects.none(), label="Dataset version")
    split = forms.ChoiceField(
        choices=[("heldout", "Held out"), ("train", "Training"), ("", "All prompts")], required=False, label="Side"
    )
    max_prompts = forms.IntegerField(min_value=1, required=False, label="Prompts at most", help_text="Empty: all.")
    texts = forms.ChoiceField(
        choices=[("responses", "Responses"), ("prompts", "Prompts")], label="Embed", help_text="For embeddings only."
    )
    per_token = forms.BooleanField(required=False, label="Log-probabilities of each token, too")
    cpus = forms.FloatField(min_value=0, max_value=1024, initial=0, label="Processors")
    gpus = forms.FloatField(min_value=0, max_value=64, initial=0, label="GPUs")
    memory_gb = forms.FloatField(min_value=0, max_value=65_536, initial=0, label="Memory")

    def __init__(self, membership: Membership, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        workspace_id = membership.workspace_id
        self._choices("model", models(workspace_id, archived=False).order_by("-id"))
        versions = DatasetVersion.objects.filter(dataset__workspace_id=workspace_id, dataset__archived_at__isnull=True)
        self._choices("dataset_version", versions.select_related("dataset").order_by("-id"))

    def _choices(self, name: str, rows: Any) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ModelChoiceField)  # noqa: S101  declared so above
        field.queryset = rows

    def params(self) -> dict[str, Any]:
        """The values as the services take them."""
        given = self.cleaned_data
        found: dict[str, Any] = {name: given[name] for name in ("split", "max_prompts")}
        found["resources"] = {name: given[name] for name in RESOURCES}
        if given["kind"] == Kind.LOGPROBS:
            found["per_token"] = given["per_token"]
        if given["kind"] == Kind.EMBED:
            found["texts"] = given["texts"]
        return found
