"""The forms of a workspace."""

from django import forms


class WorkspaceForm(forms.Form):
    name = forms.CharField(max_length=120)
