"""Forms of the sign-in pages."""

from django import forms

LONGEST_PASSWORD = 1000  # characters: the checks of a password read all of it


class Password(forms.CharField):
    """A password exactly as it was typed: spaces at its ends belong to it. `use` is the browsers' name for the field."""

    def __init__(self, use: str, label: str | None = None) -> None:
        widget = forms.PasswordInput(attrs={"autocomplete": use})
        super().__init__(label=label, widget=widget, strip=False, max_length=LONGEST_PASSWORD)


class SignInForm(forms.Form):
    email = forms.EmailField(widget=forms.EmailInput(attrs={"autocomplete": "username", "autofocus": True}))
    password = Password("current-password")
