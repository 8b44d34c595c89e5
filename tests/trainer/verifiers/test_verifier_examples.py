"""Every example that the product shows is true."""

import pytest

from trainer.contracts import VerifierSpec
from trainer.verifiers import REGISTRY, check_spec, verify

CASES = [(v.name, shown) for v in REGISTRY.values() for shown in v.examples]


@pytest.mark.parametrize(("name", "shown"), CASES, ids=[f"{name}-{shown.text[:20]!r}" for name, shown in CASES])
def test_shown_example_is_true(name, shown):
    finding = verify(VerifierSpec(name=name, args=shown.args), shown.text)
    assert finding.met is shown.met, finding.note


@pytest.mark.parametrize("verifier", REGISTRY.values(), ids=list(REGISTRY))
def test_every_verifier_shows_both_outcomes_and_valid_arguments(verifier):
    assert {shown.met for shown in verifier.examples} == {True, False}
    assert verifier.title and verifier.help
    for shown in verifier.examples:
        check_spec(VerifierSpec(name=verifier.name, args=shown.args))
