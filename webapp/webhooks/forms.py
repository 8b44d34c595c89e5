from collections.abc import Iterator
from dataclasses import dataclass

from django import forms
from django.forms.boundfield import BoundWidget

from .events import EVENTS

GROUPS = {
    "Runs and sweeps": ("run", "sweep", "claim"),
    "Answers and projects": ("answer", "task", "project"),
    "Datasets": ("version", "import", "curation"),
    "Evaluations and judges": ("evaluation", "judge"),
    "Models and jobs": ("model", "weights_job"),
    "Installation": ("backup",),
}
"""{heading: the first words of its events}"""


@dataclass(frozen=True)
class EventGroup:
    """Events under one heading of the form."""

    title: str
    boxes: list[BoundWidget]

    @property
    def chosen(self) -> int:
        return sum(bool(box.data["selected"]) for box in self.boxes)


class WebhookForm(forms.Form):
    """The address and the events of a hook. The form checks how the address is written; the services check where it leads."""

    url = forms.CharField(
        max_length=2000,
        label="Address",
        widget=forms.URLInput(attrs={"placeholder": "https://example.org/touchstone", "autocomplete": "off"}),
        help_text="Each event is sent there as a signed POST with a JSON body.",
    )
    events = forms.MultipleChoiceField(
        choices=list(EVENTS.items()),
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one event."},
    )

    def groups(self) -> Iterator[EventGroup]:
        boxes = list(self["events"])
        for title, firsts in GROUPS.items():
            yield EventGroup(title, [box for box in boxes if box.data["value"].partition(".")[0] in firsts])
