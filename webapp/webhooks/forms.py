from django import forms

from .events import EVENTS


class WebhookForm(forms.Form):
    """The address and the events of a hook. The form checks how the address is written; the services check where it leads."""

    url = forms.CharField(
        max_length=2000,
        label="Address",
        widget=forms.URLInput(attrs={"placeholder": "https://example.org/touchstone", "autocomplete": "off"}),
        help_text="Each event is sent there as a signed POST with a JSON body.",
    )
    events = forms.MultipleChoiceField(choices=list(EVENTS.items()), widget=forms.CheckboxSelectMultiple)
