from typing import Any

from django import forms

from ..models import Endpoint, RegisteredModel
from ..queries import usable


class EndpointForm(forms.Form):
    """Fields of one kind of endpoint; the services check what they hold."""

    name = forms.CharField(max_length=120, help_text="Its name for judges.")

    @classmethod
    def of(cls, kind: str) -> type["EndpointForm"]:
        forms: dict[str, type[EndpointForm]] = {
            Endpoint.Kind.CHAT: ChatForm,
            Endpoint.Kind.LOCAL: LocalForm,
            Endpoint.Kind.REWARD: RewardForm,
        }
        return forms.get(Endpoint.Kind(kind), EndpointForm)

    def fields_given(self) -> dict[str, Any]:
        """The endpoint's form as the services take it. An empty field for the key leaves the key as it is."""
        given = dict(self.cleaned_data)
        remove = given.pop("remove_secret", False)
        if "secret" in given and (remove or not given["secret"]):
            del given["secret"]
            if remove:
                given["secret"] = ""
        return given


class Priced(EndpointForm):
    price_prompt = forms.DecimalField(
        required=False,
        min_value=0,
        max_digits=12,
        decimal_places=6,
        label="Prompt",
        help_text="Needed for a money budget.",
    )
    price_completion = forms.DecimalField(
        required=False, min_value=0, max_digits=12, decimal_places=6, label="Reply", help_text="In any one currency."
    )


class Paced(EndpointForm):
    concurrency = forms.IntegerField(
        min_value=1, max_value=1000, initial=8, label="At once", help_text="Requests in flight at the same time."
    )
    requests_per_minute = forms.IntegerField(
        min_value=1, max_value=1_000_000, required=False, label="Per minute", help_text="Empty: no limit."
    )
    timeout_s = forms.FloatField(
        min_value=1, max_value=3600, initial=120, label="Time-out", help_text="Of each attempt."
    )
    retries = forms.IntegerField(
        min_value=0, max_value=10, initial=3, help_text="Attempts after the first, with pauses that double."
    )


class RewardForm(Paced):
    name = forms.CharField(max_length=120, help_text="Its name for rewards.")
    url = forms.CharField(
        max_length=2000,
        label="Address",
        widget=forms.URLInput(attrs={"placeholder": "https://rewards.example.org/score", "autocomplete": "off"}),
        help_text="Responses are posted to exactly this address.",
    )
    secret = forms.CharField(
        max_length=1000,
        required=False,
        label="Signing secret",
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text="Base64, such as openssl rand -base64 32 prints. Your service checks signatures with the same secret. It "
        "is stored encrypted and never shown again. Empty: requests are not signed.",
    )
    remove_secret = forms.BooleanField(required=False, label="Remove the stored secret")


class ChatForm(Priced, Paced):
    url = forms.CharField(
        max_length=2000,
        label="Base address",
        widget=forms.URLInput(attrs={"placeholder": "https://api.example.org/v1", "autocomplete": "off"}),
        help_text="Address of an OpenAI-compatible API: vLLM, SGLang, llama.cpp or a hosted provider. It ends before /chat/completions.",
    )
    model = forms.CharField(max_length=200, help_text="The name that the endpoint uses.")
    secret = forms.CharField(
        max_length=1000,
        required=False,
        label="Key",
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text="Stored encrypted, and never shown again.",
    )
    remove_secret = forms.BooleanField(required=False, label="Remove the stored key")


class LocalForm(Priced):
    registered_model = forms.ModelChoiceField(
        RegisteredModel.objects.none(),
        label="Model",
        help_text="A job of the cluster loads its weights; for a trial, a process of the worker loads them.",
    )

    def __init__(self, *args: Any, workspace_id: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        model = self.fields["registered_model"]
        assert isinstance(model, forms.ModelChoiceField)  # noqa: S101  declared so above
        model.queryset = usable(workspace_id).order_by("name")

    def fields_given(self) -> dict[str, Any]:
        given = super().fields_given()
        return {**given, "registered_model": given["registered_model"].pk}


class RecordedForm(forms.Form):
    file = forms.FileField(
        label="Recorded outputs",
        help_text='JSON Lines: {"key": "...", "text": "..."}. The text of a key cannot change.',
    )
