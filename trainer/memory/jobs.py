"""Forecasts the memory of jobs that load a model without training it, on a machine without GPUs.

A job holds its model in float32. The length of the prompts is not known before the job reads them: `PROMPT` is the limit that runs have
by default. So a job with longer prompts needs more; what an earlier job like it has held says so.
"""

from trainer.config.sections.sampler import Sampler

from .forecast import PROGRAM, parts_laid_out, sampling_parts
from .shape import BYTES, ModelShape

PROMPT = 512
"""Tokens of a prompt."""
READ = 4096
"""Tokens of a pass over given texts (`trainer.weights.logprobs`)."""
_KEPT = 8
"""The number of tensors as large as the hidden states that a pass without gradients holds at once, those of the MLP among them."""
ELEMENT = BYTES["float32"]


def reading(shape: ModelShape) -> int:
    """Bytes of a job whose model reads texts: scores, log-probabilities, the verdicts of a judge."""
    hidden = _KEPT * READ * max(shape.hidden, shape.inner)
    return PROGRAM + (shape.parameters + hidden + 2 * PROMPT * shape.vocabulary) * ELEMENT


def generating(shape: ModelShape, sampler: Sampler, new_tokens: int) -> int:
    """Bytes of a job whose model answers prompts. A server of vLLM that already runs has a process of its own, which is not counted."""
    held = sampler.sampling(PROMPT, new_tokens, sampler.max_batch)
    parts = [*sampling_parts(held, ELEMENT, shape, False), *parts_laid_out(held, ELEMENT, shape, False)]
    return PROGRAM + sum(part.bytes for part in parts)
