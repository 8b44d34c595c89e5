"""Imports the modules that a job with the tiny model needs. The process that forks the jobs imports this once."""

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
