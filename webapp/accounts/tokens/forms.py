"""The form of a token."""

from typing import Any

from django import forms

from ..areas import ABOUT, Area, Right
from .services import TOKEN_DAYS

CHOSEN = "areas"
SCOPES = [(Right.WRITE, "Read and write everything"), (Right.READ, "Read everything"), (CHOSEN, "Only the areas below")]
RIGHTS = [("", "nothing"), (Right.READ, "read"), (Right.WRITE, "read and write")]
LASTS = [("30", "30 days"), (str(TOKEN_DAYS), f"{TOKEN_DAYS} days"), ("365", "a year"), ("0", "until revoked")]


class TokenForm(forms.Form):
    name = forms.CharField(max_length=80, widget=forms.TextInput(attrs={"placeholder": "nightly import"}))
    scope = forms.ChoiceField(label="Permissions", choices=SCOPES, initial=Right.WRITE)
    lasts = forms.ChoiceField(choices=LASTS, initial=str(TOKEN_DAYS))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for area in Area:
            self.fields[area] = forms.ChoiceField(
                label=area.capitalize(), choices=RIGHTS, required=False, help_text=ABOUT[area].capitalize() + "."
            )

    @property
    def areas(self) -> list[forms.BoundField]:
        return [self[area] for area in Area]

    def clean(self) -> dict[str, Any]:
        found: dict[str, Any] = super().clean() or {}
        if found.get("scope") == CHOSEN and not self.rights():
            self.add_error("scope", "Choose at least one area below.")
        return found

    def rights(self) -> dict[str, str] | None:
        """{area: right}; None: the right in `scope`, for all areas."""
        if self.cleaned_data.get("scope") != CHOSEN:
            return None
        return {str(area): right for area in Area if (right := self.cleaned_data.get(area))}

    def days(self) -> int | None:
        return int(self.cleaned_data["lasts"]) or None
