"""Asynchronous runs: workers sample and score while the learner trains (METHODS 8)."""

from .loop import AsyncPolicyLoop, loop_for

__all__ = ["AsyncPolicyLoop", "loop_for"]
