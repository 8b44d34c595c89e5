"""The form for a newcomer who follows a project's link."""

from typing import Any

from django import forms

from webapp.accounts.members.forms import JoinForm


class ProjectJoinForm(JoinForm):
    """A newcomer without an account follows a project's link, which may be for one address (`email`)."""

    field_order = ("name", "email", "password")
    email = forms.EmailField(widget=forms.EmailInput(attrs={"autocomplete": "username"}))  # type: ignore[assignment]

    def __init__(self, *args: Any, email: str = "", **kwargs: Any) -> None:
        super().__init__(*args, email=email, **kwargs)
        if email:
            del self.fields["email"]
