"""What the process of a job loads before it works with the tiny model; imported once by the process that forks them."""

import gc

import torch
import transformers.models.llama.modeling_llama

import trainer.__main__
import trainer.ray_jobs.entry
import trainer.weights.command
import trainer.weights.generate
import trainer.weights.judge
import trainer.weights.score

gc.freeze()

__all__ = ["torch", "trainer", "transformers"]
