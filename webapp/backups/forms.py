from django import forms

from .models import BackupPlan

AT = [(str(hour), f"{hour:02d}:00 UTC") for hour in range(24)]
MINUTES = {15: "every 15 minutes", 60: "every hour", 360: "every 6 hours"}
WHEN = [
    ("", "never"),
    *((f"every-{minutes}", words) for minutes, words in MINUTES.items()),
    *((hour, f"every day at {words}") for hour, words in AT),
]
DAYS = [("", "never"), ("1", "every day"), ("7", "every week"), ("30", "every 30 days")]


class PlanForm(forms.Form):
    """The plan of automatic backups and drills, and the number of backups to keep."""

    when = forms.ChoiceField(
        label="Back up",
        choices=WHEN,
        required=False,
        help_text="If the disk is lost, so is the work since the last backup. Each one reads the whole database.",
    )
    keep_daily = forms.IntegerField(
        label="Days kept", min_value=1, max_value=400, help_text="The last backup of each of this many days."
    )
    keep_weekly = forms.IntegerField(
        label="Weeks kept",
        min_value=0,
        max_value=400,
        help_text="The last backup of each of this many weeks. The others are removed.",
    )
    drill_days = forms.TypedChoiceField(
        label="Try the newest backup",
        choices=DAYS,
        coerce=int,
        empty_value=None,
        required=False,
        help_text="A drill restores it beside this installation, compares all of it, and removes it again.",
    )
    drill_hour = forms.TypedChoiceField(label="Try it at", choices=AT, coerce=int)

    @classmethod
    def showing(cls, plan: BackupPlan) -> "PlanForm":
        when = f"every-{plan.minutes}" if plan.minutes is not None else "" if plan.hour is None else str(plan.hour)
        kept = {"keep_daily": plan.keep_daily, "keep_weekly": plan.keep_weekly}
        return cls(initial={"when": when, **kept, "drill_days": plan.drill_days or "", "drill_hour": plan.drill_hour})

    def plan(self) -> dict[str, int | None]:
        """The fields of a plan."""
        told = dict(self.cleaned_data)
        when = str(told.pop("when"))
        every = when.removeprefix("every-") if when.startswith("every-") else ""
        return {"hour": int(when) if when and not every else None, "minutes": int(every) if every else None, **told}
