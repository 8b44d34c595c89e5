"""What a run on the tiny model loads before its first step; imported once by the process that forks runs to be killed."""

import peft
import torch
import transformers.models.llama.modeling_llama

import trainer.inference.local
import trainer.loops.recipes.policy
import trainer.loops.recipes.reward_model
import trainer.loops.run
import trainer.runners.conductor

__all__ = ["peft", "torch", "trainer", "transformers"]
