"""The form in which people type their address."""

from django import forms


class AddressForm(forms.Form):
    """Another address for an account whose address nobody has verified."""

    email = forms.EmailField(label="Address", widget=forms.EmailInput(attrs={"autocomplete": "username"}))
