"""Forms with which administrators set rules for personal data."""

from django import forms

from .retention import LEAST, MOST, NOTICE


class RetentionForm(forms.Form):
    """Sets after how many days an unused account is erased. An empty field keeps all accounts."""

    unused_days = forms.IntegerField(
        label="Days without use after which an account is erased",
        required=False,
        min_value=LEAST,
        max_value=MOST,
        help_text=f"Empty: accounts stay. From {LEAST} to {MOST:,} days. This page announces an account {NOTICE} days before it is erased.",
    )

    @classmethod
    def showing(cls, unused_days: int | None) -> "RetentionForm":
        return cls(initial={"unused_days": unused_days})
