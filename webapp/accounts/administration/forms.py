"""Forms of administrators."""

from django import forms

from .quotas import GB, MOST, Limits

COUNTED = ("running_runs", "gpus", "imports_at_once")


class LimitsForm(forms.Form):
    """Limits of a workspace. An empty field sets no limit of its own."""

    running_runs = forms.IntegerField(
        label="Runs at once", required=False, min_value=0, max_value=10_000, help_text="More runs wait in the line."
    )
    gpus = forms.IntegerField(
        label="GPUs at once",
        required=False,
        min_value=0,
        max_value=10_000,
        help_text="The GPUs that its runs and jobs hold together. More runs and jobs wait; a run that asks for more than this is refused.",
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
