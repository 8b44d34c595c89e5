"""Deterministic programs that decide a criterion: one module per family, and a plain registry.

To add one, write a module with `VERIFIERS`, name it in `_FAMILIES`, and mirror it in tests/trainer/verifiers.
"""

from pydantic import ValidationError

from trainer.contracts import VerifierSpec

from . import casing, contains, counts, edges, language, patterns, repeats, structure
from .base import Args, Finding, Verifier, VerifierError, VerifierExample

__all__ = ["REGISTRY", "Args", "VerifierExample", "Finding", "Verifier", "VerifierError", "check_spec", "verify"]

_FAMILIES = (counts, contains, edges, casing, structure, patterns, language, repeats)
REGISTRY: dict[str, Verifier] = {verifier.name: verifier for family in _FAMILIES for verifier in family.VERIFIERS}


def check_spec(spec: VerifierSpec) -> None:
    """Raises VerifierError, naming the first wrong field, if the spec cannot be run."""
    _resolve(spec)


def verify(spec: VerifierSpec, text: str) -> Finding:
    """Whether `text` meets the condition. Raises VerifierError for a spec that cannot be run, and nothing for any text."""
    verifier, args = _resolve(spec)
    return verifier.check(text, args)


def _resolve(spec: VerifierSpec) -> tuple[Verifier, Args]:
    verifier = REGISTRY.get(spec.name)
    if verifier is None:
        raise VerifierError("name", f"unknown verifier {spec.name!r}; known: {', '.join(sorted(REGISTRY))}")
    try:
        return verifier, verifier.args.model_validate(spec.args)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(["args", *map(str, first["loc"])])
        message = "unknown key" if first["type"] == "extra_forbidden" else first["msg"].removeprefix("Value error, ")
        raise VerifierError(field, message) from error
