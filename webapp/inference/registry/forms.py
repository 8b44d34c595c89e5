from typing import Any

from django import forms

from ..models import RegisteredModel


class ModelForm(forms.Form):
    name = forms.CharField(max_length=120, help_text="Its name for runs.")
    source = forms.ChoiceField(choices=[("local", "Local directory"), ("hub", "Hub id")], initial="local")
    path = forms.CharField(
        max_length=500,
        label="Directory or hub id",
        help_text="An absolute directory on the server with config.json, safetensors and a tokenizer, or owner/name. "
        "People who are not administrators can register directories in the folder for models.",
    )
    base = forms.ModelChoiceField(
        RegisteredModel.objects.none(),
        required=False,
        empty_label="None: it is a whole model",
        help_text="For an adapter (adapter_config.json): the model that it was trained on.",
    )
    head = forms.ChoiceField(
        choices=[("", "As its directory says; a hub id writes text"), *RegisteredModel.Head.choices],
        required=False,
        label="Kind of model",
        help_text="For a hub id, whose files cannot be checked here: a reward model scores text.",
    )
    description = forms.CharField(widget=forms.Textarea(attrs={"rows": 3}), required=False, max_length=20_000)

    def __init__(self, *args: Any, workspace_id: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        rows = RegisteredModel.objects.filter(workspace_id=workspace_id, archived_at=None)
        base = self.fields["base"]
        assert isinstance(base, forms.ModelChoiceField)  # noqa: S101  declared so above
        base.queryset = rows.order_by("name")

    def fields_given(self) -> dict[str, Any]:
        """The arguments of the service."""
        base = self.cleaned_data["base"]
        return {**self.cleaned_data, "base": base.pk if base else None}


class ModelAboutForm(forms.Form):
    name = forms.CharField(
        max_length=120, help_text="The name that runs use. Configs of earlier runs keep the old name."
    )
    description = forms.CharField(widget=forms.Textarea(attrs={"rows": 3}), required=False, max_length=20_000)
