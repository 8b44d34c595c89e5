from django import forms

from .models import BackupPlan

HOURS = [("", "never"), *((str(hour), f"{hour:02d}:00 UTC") for hour in range(24))]


class PlanForm(forms.Form):
    """When backups are made by themselves, and how many of them are kept."""

    hour = forms.TypedChoiceField(label="Every day at", choices=HOURS, coerce=int, empty_value=None, required=False)
    keep_daily = forms.IntegerField(
        label="Days kept", min_value=1, max_value=400, help_text="The last backup of so many days."
    )
    keep_weekly = forms.IntegerField(
        label="Weeks kept", min_value=0, max_value=400, help_text="And of so many weeks. The others are removed."
    )

    @classmethod
    def showing(cls, plan: BackupPlan) -> "PlanForm":
        hour = "" if plan.hour is None else str(plan.hour)
        return cls(initial={"hour": hour, "keep_daily": plan.keep_daily, "keep_weekly": plan.keep_weekly})
