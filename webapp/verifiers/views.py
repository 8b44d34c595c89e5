"""The page of the verifiers, on which each can be tried on a text."""

import json
from typing import Any

from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_POST

from trainer.contracts import VerifierSpec
from trainer.verifiers import REGISTRY, Verifier, VerifierError, verify
from webapp.accounts.access import member, require
from webapp.accounts.models import Role
from webapp.core.forms.model_schemas import schema_of
from webapp.core.problems import Problem
from webapp.core.requests.limits import count_seconds

MAX_TRIED = 100_000  # characters


@member(Role.ANNOTATOR)
@require_GET
def verifiers(request: HttpRequest) -> HttpResponseBase:
    return render(request, "verifiers/verifiers.html", {"verifiers": [_described(each) for each in REGISTRY.values()]})


def _described(verifier: Verifier) -> dict[str, Any]:
    schema = schema_of(verifier.args)
    required = schema.get("required", [])
    arguments = [
        {"name": name, "required": name in required, "help": field.get("description", ""), "type": _type(field)}
        for name, field in schema.get("properties", {}).items()
    ]
    examples = [
        {"text": e.text, "args": json.dumps(e.args, ensure_ascii=False), "met": e.met} for e in verifier.examples
    ]
    return {
        "verifier": verifier,
        "arguments": arguments,
        "examples": examples,
        "first": examples[0] if examples else None,
    }


def _type(field: dict[str, Any]) -> str:
    choices = field.get("enum")
    if choices:
        return " or ".join(map(str, choices))
    kinds = [field, *field.get("anyOf", [])]
    return " or ".join(str(kind["type"]) for kind in kinds if kind.get("type") not in (None, "null"))


@member(Role.ANNOTATOR)
@require_POST
def verifier_try(request: HttpRequest, name: str) -> HttpResponseBase:
    """A fragment with the finding, or with what is wrong with the arguments (422)."""
    if name not in REGISTRY:
        raise Http404("no such verifier")
    try:
        args = json.loads(request.POST.get("args") or "{}")
        if not isinstance(args, dict):
            raise ValueError("must be an object")
        spec = VerifierSpec(name=name, args=args)
        with count_seconds(require(request).user_id):
            finding = verify(spec, request.POST.get("text", "")[:MAX_TRIED])
    except Problem as problem:
        return render(request, "verifiers/_finding.html", {"error": problem.message}, status=problem.status)
    except VerifierError as error:
        return render(request, "verifiers/_finding.html", {"error": f"{error.field}: {error.message}"}, status=422)
    except (ValueError, RecursionError) as error:
        return render(request, "verifiers/_finding.html", {"error": f"args: not a JSON object: {error}"}, status=422)
    return render(request, "verifiers/_finding.html", {"finding": finding})
