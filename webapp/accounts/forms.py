"""What people type about themselves and each other."""

from typing import Any

from django import forms
from django.contrib.auth import password_validation

from .areas import ABOUT, Area, Right
from .models import Role, User
from .quotas import GB, MOST, Limits
from .services import TOKEN_DAYS

CHOSEN = "areas"
SCOPES = [(Right.WRITE, "Read and write everything"), (Right.READ, "Read everything"), (CHOSEN, "Only the areas below")]
RIGHTS = [("", "nothing"), (Right.READ, "read"), (Right.WRITE, "read and write")]
LASTS = [("30", "30 days"), (str(TOKEN_DAYS), f"{TOKEN_DAYS} days"), ("365", "a year"), ("0", "until revoked")]


LONGEST_PASSWORD = 1000  # characters: what looks at a password reads all of it


class Password(forms.CharField):
    """A password exactly as it was typed: spaces at its ends belong to it. `use` is what browsers call it."""

    def __init__(self, use: str, label: str | None = None) -> None:
        widget = forms.PasswordInput(attrs={"autocomplete": use})
        super().__init__(label=label, widget=widget, strip=False, max_length=LONGEST_PASSWORD)


class SignInForm(forms.Form):
    email = forms.EmailField(widget=forms.EmailInput(attrs={"autocomplete": "username", "autofocus": True}))
    password = Password("current-password")


class PasswordForm(forms.Form):
    """Sets a password; asks for the present one where there is one."""

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


class AddressForm(forms.Form):
    """Another address for an account whose address nobody has verified."""

    email = forms.EmailField(label="Address", widget=forms.EmailInput(attrs={"autocomplete": "username"}))


class TokenForm(forms.Form):
    name = forms.CharField(max_length=80, widget=forms.TextInput(attrs={"placeholder": "nightly import"}))
    scope = forms.ChoiceField(label="May", choices=SCOPES, initial=Right.WRITE)
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
        """{area: right}; None: what `scope` says, in all areas."""
        if self.cleaned_data.get("scope") != CHOSEN:
            return None
        return {str(area): right for area in Area if (right := self.cleaned_data.get(area))}

    def days(self) -> int | None:
        return int(self.cleaned_data["lasts"]) or None


class InviteForm(forms.Form):
    email = forms.EmailField()
    role = forms.ChoiceField(choices=Role.choices, initial=Role.ANNOTATOR)


class WorkspaceForm(forms.Form):
    name = forms.CharField(max_length=120)


class JoinForm(forms.Form):
    """A person without an account accepts an invitation to `email`."""

    name = forms.CharField(max_length=120, label="Your name", widget=forms.TextInput(attrs={"autocomplete": "name"}))
    password = Password("new-password")

    def __init__(self, *args: Any, email: str = "", **kwargs: Any) -> None:
        self.email = email
        super().__init__(*args, **kwargs)

    def clean_password(self) -> str:
        """It is looked at beside what is known of the person: fields before it were cleaned before it."""
        password: str = self.cleaned_data["password"]
        known = User(email=self.cleaned_data.get("email", self.email), name=self.cleaned_data.get("name", ""))
        password_validation.validate_password(password, known)
        return password


COUNTED = ("running_runs", "gpus", "imports_at_once")


class LimitsForm(forms.Form):
    """What a workspace may use; an empty field sets no limit of its own."""

    running_runs = forms.IntegerField(
        label="Runs at once", required=False, min_value=0, max_value=10_000, help_text="More runs wait in the line."
    )
    gpus = forms.IntegerField(
        label="GPUs at once",
        required=False,
        min_value=0,
        max_value=10_000,
        help_text="The GPUs that its runs and jobs hold together. More runs and jobs wait; one that asks for more than this is refused.",
    )
    imports_at_once = forms.IntegerField(
        label="Imports at once", required=False, min_value=0, max_value=10_000, help_text="Further imports are refused."
    )
    import_gb = forms.FloatField(
        label="Imported files, in GB",
        required=False,
        min_value=0,
        max_value=MOST / GB,
        help_text="The files of imports that are under way or whose version still exists.",
    )
    logged_gb = forms.FloatField(
        label="Files of logged runs, in GB",
        required=False,
        min_value=0,
        max_value=MOST / GB,
        help_text="The files that other programs send with the runs that they log here.",
    )

    @classmethod
    def showing(cls, limits: Limits) -> "LimitsForm":
        given: dict[str, float | None] = {name: getattr(limits, name) for name in COUNTED}
        for name, size in (("import_gb", limits.import_bytes), ("logged_gb", limits.logged_bytes)):
            given[name] = None if size is None else size / GB
        return cls(initial=given)

    def limits(self) -> Limits:
        sizes = [self.cleaned_data[name] for name in ("import_gb", "logged_gb")]
        imported, logged = (None if size is None else round(size * GB) for size in sizes)
        counts = {name: self.cleaned_data[name] for name in COUNTED}
        return Limits(**counts, import_bytes=imported, logged_bytes=logged)
