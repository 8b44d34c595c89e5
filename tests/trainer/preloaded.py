"""Imports the modules that a run on the tiny model needs, and does what loading a first model adds. The process that forks runs imports this once."""

import peft
import torch
import transformers.models.llama.modeling_llama
from transformers.conversion_mapping import get_checkpoint_conversion_mapping

import trainer.inference.local
import trainer.loops.recipes.policy
import trainer.loops.recipes.reward_model
import trainer.loops.run
import trainer.runners.conductor

__all__ = ["peft", "torch", "trainer", "transformers"]

get_checkpoint_conversion_mapping("llama")  # compiles hundreds of patterns
