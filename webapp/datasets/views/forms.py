"""Forms of the pages. They check the form of the values; the services check the rest."""

from django import forms

from ..formats.importers import REGISTRY


class NewDatasetForm(forms.Form):
    file = forms.FileField(
        label="File",
        help_text="JSON Lines, JSON, CSV, TSV or Parquet, gzipped or not; or a ZIP of files that belong together.",
    )
    name = forms.CharField(max_length=120, label="Dataset name", help_text="An existing dataset gets a new version.")
    format = forms.ChoiceField(
        label="Format",
        choices=[("auto", "Detect"), *((each.name, each.label) for each in REGISTRY.values())],
        required=False,
    )
    heldout_percent = forms.IntegerField(
        label="Held out",
        min_value=0,
        max_value=100,
        required=False,
        help_text="For examples without a split. Leave it empty to use the default of the format.",
    )
    group_by = forms.CharField(
        label="Keep together",
        max_length=80,
        required=False,
        help_text="Which examples go to the same side. Empty: those with the same prompt. Or write domain, source or meta.NAME.",
    )
    keep_good = forms.BooleanField(label="Import the good lines even if others are malformed", required=False)
