"""The administrators' page of the company's directories."""

from typing import cast

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from webapp.accounts.access import administrators
from webapp.accounts.models import User, Workspace
from webapp.core.network.addresses import public_url
from webapp.core.pages import confirmation
from webapp.core.problems import Problem

from . import directories
from .models import Directory, DirectoryKey


class DirectoryForm(forms.Form):
    name = forms.CharField(max_length=80, widget=forms.TextInput(attrs={"placeholder": "Entra ID"}))
    everywhere = forms.BooleanField(required=False, label="All workspaces, also later ones")
    workspaces = forms.ModelMultipleChoiceField(
        Workspace.objects.order_by("name"), required=False, label="Or these", widget=forms.CheckboxSelectMultiple
    )


@administrators
@never_cache
@require_http_methods(["GET", "POST"])
def page(request: HttpRequest) -> HttpResponse:
    """All directories; POST makes one. Only this response has the secret of a key."""
    form = DirectoryForm(request.POST or None)
    if form.is_valid():
        said = form.cleaned_data
        try:
            directory, secret = directories.create(
                cast(User, request.user), said["name"], said["everywhere"], list(said["workspaces"])
            )
            return _page(request, DirectoryForm(), directory, secret)
        except Problem as problem:
            for field, reason in problem.fields.items():
                form.add_error(field, reason)
    return _page(request, form)


@administrators
@never_cache
@require_POST
def new_key(request: HttpRequest, directory_id: int) -> HttpResponse:
    directory = get_object_or_404(Directory, pk=directory_id)
    return _page(request, DirectoryForm(), directory, directories.make_key(cast(User, request.user), directory))


@administrators
@require_POST
def revoke(request: HttpRequest, key_id: int) -> HttpResponse:
    key = get_object_or_404(DirectoryKey.objects.select_related("directory"), pk=key_id)
    title = f"Revoke the key {key.prefix}… of {key.directory}?"
    text = "From then on the directory is refused with this key. People who leave the company keep their accounts until another key works."
    if asked := confirmation.question(
        request, title=title, text=text, yes="Revoke", back=reverse("installation_directories")
    ):
        return asked
    directories.revoke_key(cast(User, request.user), key)
    messages.success(request, "Key revoked.")
    return redirect("installation_directories")


def _page(
    request: HttpRequest, form: DirectoryForm, directory: Directory | None = None, secret: str = ""
) -> HttpResponse:
    context = {
        "form": form,
        "directories": directories.listed(),
        "address": f"{public_url()}/scim/v2",
        "of": directory,
        "secret": secret,
    }
    return render(request, "installation/directories.html", context, status=422 if form.errors else 200)
