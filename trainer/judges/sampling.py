"""The parameters with which an endpoint samples its text."""

from trainer.config.fields import Section, knob


class Sampling(Section):
    """The sampling parameters of one call, with the names of OpenAI's chat API."""

    temperature: float = knob(0.0, "0 always takes the most likely token", ge=0.0, le=2.0)
    top_p: float = knob(
        1.0, "Nucleus: sample from the smallest set of tokens that has this probability", gt=0.0, le=1.0
    )
    max_tokens: int = knob(1024, "Longest reply; a longer one is cut and counts as truncated", unit="tokens", ge=1)
    seed: int | None = knob(None, "Seed of sampling, for endpoints that support one", advanced=True, ge=0, lt=2**63)
