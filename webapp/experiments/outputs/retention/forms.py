"""The form of the rule."""

from django import forms

from .models import DAYS
from .services import LEAST, MOST


class CheckpointRuleForm(forms.Form):
    days = forms.IntegerField(
        label="Days after the end of a run",
        min_value=LEAST,
        max_value=MOST,
        initial=DAYS,
        help_text="Checkpoints of runs that ended earlier are deleted if nothing needs them.",
    )
