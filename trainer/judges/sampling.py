"""The parameters with which an endpoint samples its text."""

from trainer.config.fields import Section, knob


class Sampling(Section):
    """The sampling parameters of one call, with the names of OpenAI's chat API."""

    temperature: float = knob(0.0, "0 takes the likeliest token each time", ge=0.0, le=2.0)
    top_p: float = knob(1.0, "Share of the probability that is drawn from", gt=0.0, le=1.0)
    max_tokens: int = knob(1024, "Longest reply; a longer one is cut and counts as truncated", unit="tokens", ge=1)
    seed: int | None = knob(None, "For endpoints that can repeat a draw", advanced=True, ge=0, lt=2**63)
