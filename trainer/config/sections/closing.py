"""The section of a config lists the measurements after the last step of a run."""

from ..fields import Section, knob


class Closing(Section):
    """After the last step the policy answers the held-out prompts once more, without a scaffold, at the temperature of training."""

    samples: int = knob(
        16,
        "Responses to each held-out prompt; this is the largest k of pass@k and n of best of n",
        unit="responses",
        ge=2,
        le=1000,
    )
    passed: float = knob(1.0, "A response passes, for pass@k, if its rubric score is at least this", le=1)
