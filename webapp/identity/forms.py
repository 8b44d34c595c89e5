"""The form of owners for the sign-in to their workspace."""

from django import forms

from webapp.accounts.models import Workspace


class TimeOutsForm(forms.Form):
    """Minutes; an empty field sets no time-out of the workspace's own."""

    idle_minutes = forms.IntegerField(label="Minutes without use", required=False, min_value=1, max_value=10**6)
    session_minutes = forms.IntegerField(label="Minutes in any case", required=False, min_value=1, max_value=10**6)

    @classmethod
    def showing(cls, workspace: Workspace) -> "TimeOutsForm":
        return cls(initial={name: getattr(workspace, name) for name in cls.base_fields})
