from typing import Any

from django import forms

from webapp.accounts.models import Membership
from webapp.datasets.models import DatasetVersion
from webapp.inference.models import RegisteredModel
from webapp.inference.queries import usable


class GenerateForm(forms.Form):
    """The services check what the fields hold."""

    model = forms.ModelChoiceField(RegisteredModel.objects.none(), help_text="Who answers.")
    dataset_version = forms.ModelChoiceField(
        DatasetVersion.objects.none(), label="Prompts of", help_text="The newest versions of this workspace."
    )
    split = forms.ChoiceField(
        choices=[("heldout", "Held out"), ("train", "Training"), ("", "All prompts")], required=False, label="Side"
    )
    dataset = forms.CharField(
        max_length=120, label="Dataset for the responses", help_text="A new name, or a dataset that gets a new version."
    )
    keep = forms.BooleanField(
        required=False, label="Keep the responses that the prompts have already, with their preferences"
    )
    samples = forms.IntegerField(min_value=1, max_value=64, initial=1, label="Responses to each prompt")
    max_prompts = forms.IntegerField(min_value=1, required=False, label="Prompts at most", help_text="Empty: all.")
    max_new_tokens = forms.IntegerField(min_value=1, max_value=32_768, initial=256, label="Longest response")
    temperature = forms.FloatField(min_value=0, max_value=5, initial=0.7, help_text="0: always the likeliest token.")
    top_p = forms.FloatField(min_value=0.01, max_value=1, initial=1.0, label="Top-p")
    seed = forms.IntegerField(min_value=0, max_value=2**31 - 1, initial=0)

    def __init__(self, membership: Membership, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._choices("model", usable(membership.workspace_id))
        newest = DatasetVersion.objects.filter(
            dataset__workspace_id=membership.workspace_id, dataset__archived_at__isnull=True
        )
        self._choices("dataset_version", newest.select_related("dataset").order_by("-id"))

    def _choices(self, name: str, rows: Any) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ModelChoiceField)  # noqa: S101  declared so above
        field.queryset = rows

    def params(self) -> dict[str, Any]:
        """As the services take them."""
        given = {name: value for name, value in self.cleaned_data.items() if value is not None}
        return {name: value for name, value in given.items() if name not in ("model", "dataset_version")}
