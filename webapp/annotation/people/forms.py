"""What a newcomer fills in who follows a project's link."""

from typing import Any

from django import forms as fields

from webapp.accounts import forms


class ProjectJoinForm(forms.JoinForm):
    """A newcomer without an account follows a project's link, which may be for one address (`email`)."""

    field_order = ("name", "email", "password")
    email = fields.EmailField(widget=fields.EmailInput(attrs={"autocomplete": "username"}))  # type: ignore[assignment]

    def __init__(self, *args: Any, email: str = "", **kwargs: Any) -> None:
        super().__init__(*args, email=email, **kwargs)
        if email:
            del self.fields["email"]
