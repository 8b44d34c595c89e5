"""Imports what the programs of `test_real_client` use: MLflow's client, torch and transformers, and nothing of the product. The process that
forks these programs imports this once.
"""

from importlib import import_module

import mlflow
import mlflow.data
import mlflow.pytorch
import torch
from mlflow.store.artifact import runs_artifact_repo
from transformers import GPT2LMHeadModel, Trainer

__all__ = ["GPT2LMHeadModel", "Trainer", "mlflow", "runs_artifact_repo", "torch"]

import_module("pandas")  # by name, because the product itself does not ask for it
