"""Answers of the model that is being trained, without a second copy of its weights."""

from collections.abc import Sequence
from typing import Any

from trainer.config.recipes.sft import ANSWERED_AT_ONCE
from trainer.contracts import Message
from trainer.inference.chat import encode_prompt
from trainer.inference.sampling import SampleRequest, SampleResult, SamplingProgress

from ..learner.learner import Learner


def greedy_answers(
    learner: Learner,
    tokenizer: Any,
    prompts: Sequence[Sequence[Message]],
    max_new_tokens: int,
    progress: SamplingProgress,
) -> list[SampleResult]:
    """The most likely answer to each prompt."""
    from trainer.inference.local import LocalSampler

    trained = [parameter for parameter in learner.plain.parameters() if parameter.requires_grad]
    try:
        # A sampler switches gradients off for good, but the next update needs them.
        sampler = LocalSampler(learner.plain, tokenizer, ANSWERED_AT_ONCE)
        requests = [
            SampleRequest(encode_prompt(tokenizer, prompt), max_new_tokens, temperature=0.0, top_p=1.0, stop=(), seed=0)
            for prompt in prompts
        ]
        return sampler.sample(requests, progress)
    finally:
        for parameter in trained:
            parameter.requires_grad_(True)
