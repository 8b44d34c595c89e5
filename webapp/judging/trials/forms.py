"""The form of inputs that examples do not have."""

from typing import Any

from django import forms

from trainer.judges.spec import Kind

from .services import Extra

EXTRA = {
    "rubric_matcher": ("generated",),
    "rubric_generator": ("generated",),
    "reason_matcher": ("model_reasons",),
    "flaws": ("model_reasons", "verdict"),
    "reasons": ("rationale",),
}
EXTRA_LABELS = {
    "generated": (
        "Rubric items, one per line",
        "An example has only one rubric. Enter here the items to match or to improve.",
    ),
    "model_reasons": ("The judge's reasons, one per line", "Examples only have human reasons."),
    "verdict": ("The verdict that these reasons were given for", ""),
    "rationale": ("Rationale", "Empty: it is made from the example's human reasons."),
}


class ExtraForm(forms.Form):
    """Inputs that judges of this kind read and examples do not have; most kinds have none."""

    def __init__(self, kind: Kind, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.kind = kind
        for name in EXTRA.get(kind.name, ()):
            label, text = EXTRA_LABELS[name]
            area = forms.Textarea(attrs={"rows": 3})
            self.fields[f"extra_{name}"] = forms.CharField(
                required=False, label=label, help_text=text, widget=area, max_length=20_000
            )

    @staticmethod
    def initial_from(extra: dict[str, Any]) -> dict[str, str]:
        return {f"extra_{n}": "\n".join(each) if isinstance(each, list) else each for n, each in extra.items()}

    @property
    def extra_fields(self) -> list[forms.BoundField]:
        return [self[f"extra_{name}"] for name in EXTRA.get(self.kind.name, ())]

    def extra(self) -> Extra:
        data: dict[str, Any] = {
            name: self.cleaned_data.get(f"extra_{name}", "") for name in EXTRA.get(self.kind.name, ())
        }
        data |= {name: _lines(data[name]) for name in ("generated", "model_reasons") if name in data}
        return Extra(**data)


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]
