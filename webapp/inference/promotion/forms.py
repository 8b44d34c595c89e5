from django import forms

from ..models import STAGES
from . import services

_REASON = "The history keeps it, for people who ask later."


class AliasForm(forms.Form):
    name = forms.CharField(
        max_length=61,
        label="Alias",
        help_text="Such as champion. An existing alias moves here from its model.",
        widget=forms.TextInput(attrs={"list": "aliases", "autocomplete": "off", "spellcheck": "false"}),
    )
    reason = forms.CharField(
        required=False, max_length=services.MAX_REASON, help_text=_REASON, widget=forms.Textarea(attrs={"rows": 2})
    )


class StageForm(forms.Form):
    stage = forms.ChoiceField(choices=[("", "No stage"), *STAGES.items()], required=False)
    reason = forms.CharField(
        required=False, max_length=services.MAX_REASON, help_text=_REASON, widget=forms.Textarea(attrs={"rows": 2})
    )
