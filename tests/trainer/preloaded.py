"""Imports the modules that a run on the tiny model needs. The process that forks runs to be killed imports this once."""

import peft
import torch
import transformers.models.llama.modeling_llama

import trainer.inference.local
import trainer.loops.recipes.policy
import trainer.loops.recipes.reward_model
import trainer.loops.run
import trainer.runners.conductor

__all__ = ["peft", "torch", "trainer", "transformers"]
