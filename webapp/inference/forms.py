from django import forms


class ModelForm(forms.Form):
    name = forms.CharField(max_length=120, help_text="What runs call it.")
    source = forms.ChoiceField(choices=[("local", "Local directory"), ("hub", "Hub id")], initial="local")
    path = forms.CharField(
        max_length=500,
        label="Directory or hub id",
        help_text="An absolute directory on the server with config.json, safetensors and a tokenizer, or owner/name.",
    )
    description = forms.CharField(widget=forms.Textarea(attrs={"rows": 3}), required=False, max_length=20_000)
