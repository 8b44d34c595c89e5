"""The form of a judge's spec, drawn from its schema."""

from typing import Any

from django import forms

from trainer.config.errors import ConfigInvalid
from trainer.judges.base import MAX_TEMPLATE
from trainer.judges.spec import Kind
from webapp.core.problems import Problem
from webapp.inference.models import Endpoint

from ..models import MAX_NAME
from ..trials.forms import ExtraForm

SAMPLING = ("temperature", "top_p", "max_tokens", "seed")
ORDERS = [("both", "Both orders"), ("given", "As given"), ("swapped", "Swapped")]
SCALES = [("tie", "A, B or tie"), ("forced", "A or B"), ("five", "Five steps, A much better to B much better")]
RUBRIC_FORMS = [
    ("touchstone", "JSON with points, kind and importance"),
    ("mams", "MaMs: title, description, weight"),
    ("rubric_arm", "Rubric-ARM: hard rules and principles"),
    ("openrubrics", "OpenRubrics: a checklist of four levels"),
]
JUDGEMENT_FORMS = [("json", "JSON"), ("lines", "Lines, for small models that were trained on lines")]
CHOICES = {"order": ORDERS, "scale": SCALES, "rubric_generator.form": RUBRIC_FORMS, "pairwise.form": JUDGEMENT_FORMS}


class TemplateField(forms.CharField):
    """Text without any change. It gets the line ends of stored templates, because browsers send others."""

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value)
        return text.replace("\r\n", "\n") if isinstance(text, str) else text


class JudgeForm(ExtraForm):
    """The fields of one kind of judge; the trainer's schema checks their values."""

    name = forms.CharField(max_length=MAX_NAME, help_text="Its name for evaluations.")
    endpoint = forms.ModelChoiceField(Endpoint.objects.none(), empty_label=None, help_text="Who is asked.")
    system = TemplateField(strip=False, required=False, max_length=MAX_TEMPLATE, label="System")
    prompt = TemplateField(strip=False, max_length=MAX_TEMPLATE)
    temperature = forms.FloatField(min_value=0, max_value=2)
    top_p = forms.FloatField(min_value=0, max_value=1, label="Top p")
    max_tokens = forms.IntegerField(min_value=1, label="Longest reply")
    seed = forms.IntegerField(min_value=0, required=False)
    note = forms.CharField(max_length=300, required=False, help_text="The purpose of this version, or its changes.")

    def __init__(self, kind: Kind, workspace_id: int, *args: Any, named: bool, **kwargs: Any) -> None:
        super().__init__(kind, *args, **kwargs)
        rows = Endpoint.objects.filter(workspace_id=workspace_id, archived_at=None)
        rows = rows.exclude(kind=Endpoint.Kind.REWARD).order_by("name")
        endpoint = self.fields["endpoint"]
        assert isinstance(endpoint, forms.ModelChoiceField)  # noqa: S101  declared so above
        endpoint.queryset = rows
        for name in ("system", "prompt"):
            self.fields[name].widget = forms.Textarea(attrs={"rows": 12, "data-template": "", "spellcheck": "false"})
            self.fields[name].help_text = kind.spec.model_fields[name].description or ""
        if not named:
            del self.fields["name"]
        for name in self.knobs:
            self.fields[name] = _knob(kind, name)

    @property
    def knobs(self) -> list[str]:
        """Fields of the kind beyond templates and sampling."""
        return [name for name in self.kind.spec.model_fields if name not in ("kind", "system", "prompt", "sampling")]

    @property
    def knob_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in self.knobs]

    @staticmethod
    def initial_of(spec: dict[str, Any]) -> dict[str, Any]:
        return {**{name: value for name, value in spec.items() if name != "sampling"}, **spec["sampling"]}

    def spec(self) -> dict[str, Any]:
        """The values as a spec for `trainer.judges.spec.resolve`."""
        data = self.cleaned_data
        chosen = {name: data[name] for name in ("system", "prompt", *self.knobs)}
        return {"kind": self.kind.name, **chosen, "sampling": {name: data[name] for name in SAMPLING}}

    def tell(self, problem: ConfigInvalid | Problem) -> None:
        """Puts each problem at its field, or above the form if it has none of its own."""
        if isinstance(problem, ConfigInvalid):
            told = [(each.path, each.message) for each in problem.problems]
        else:
            told = list(problem.fields.items()) or [("", problem.message)]
        for path, message in told:
            name = path.removeprefix("sampling.")
            known = name in self.fields
            self.add_error(name if known else None, message if known or not path else f"{path}: {message}")


def _knob(kind: Kind, name: str) -> forms.Field:
    field = kind.spec.model_fields[name]
    label, text = name.replace("_", " ").capitalize(), field.description or ""
    if choices := CHOICES.get(f"{kind.name}.{name}") or CHOICES.get(name):
        return forms.ChoiceField(choices=choices, label=label, help_text=text)
    return forms.IntegerField(min_value=0, max_value=1000, label=label, help_text=text)
