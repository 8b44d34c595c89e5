"""Forms about other people."""

from typing import Any

from django import forms
from django.contrib.auth import password_validation

from ..models import Role, User
from ..sign_in.forms import Password


class InviteForm(forms.Form):
    email = forms.EmailField()
    role = forms.ChoiceField(choices=Role.choices, initial=Role.ANNOTATOR)


class JoinForm(forms.Form):
    """A person without an account accepts an invitation to `email`."""

    name = forms.CharField(max_length=120, label="Your name", widget=forms.TextInput(attrs={"autocomplete": "name"}))
    password = Password("new-password")

    def __init__(self, *args: Any, email: str = "", **kwargs: Any) -> None:
        self.email = email
        super().__init__(*args, **kwargs)

    def clean_password(self) -> str:
        """Compares the password with what is known of the person: the fields before it are already cleaned."""
        password: str = self.cleaned_data["password"]
        known = User(email=self.cleaned_data.get("email", self.email), name=self.cleaned_data.get("name", ""))
        password_validation.validate_password(password, known)
        return password
