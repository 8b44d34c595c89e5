"""The form that people fill in when they share."""

from django import forms

from .models import MAX_NAME
from .services import DAYS, MOST_DAYS

LASTS = [
    ("7", "7 days"),
    (str(DAYS), f"{DAYS} days"),
    ("90", "90 days"),
    (str(MOST_DAYS), "a year"),
    ("0", "until revoked"),
]


class ShareForm(forms.Form):
    name = forms.CharField(
        max_length=MAX_NAME, help_text="For the list of links. People who open the link do not see it."
    )
    lasts = forms.ChoiceField(label="The link works for", choices=LASTS, initial=str(DAYS))

    def days(self) -> int | None:
        return int(self.cleaned_data["lasts"]) or None
