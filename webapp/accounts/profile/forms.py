"""Forms of the own profile."""

from typing import Any

from django import forms
from django.contrib.auth import password_validation

from ..models import User
from ..sign_in.forms import Password


class PasswordForm(forms.Form):
    """Sets a password, and asks for the present one if there is one."""

    current = Password("current-password", "Current password")
    new = Password("new-password", "New password")

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        self.user = user
        super().__init__(*args, **kwargs)
        if not user.has_usable_password():
            del self.fields["current"]

    def clean_current(self) -> str:
        current: str = self.cleaned_data["current"]
        if not self.user.check_password(current):
            raise forms.ValidationError("This is not your current password.")
        return current

    def clean_new(self) -> str:
        new: str = self.cleaned_data["new"]
        password_validation.validate_password(new, self.user)
        return new
