"""Runs of more than one process: workers that sample while the learner trains (METHODS 8), learners of several processes."""

from .loop import AsyncPolicyLoop, learners_for, loop_for

__all__ = ["AsyncPolicyLoop", "learners_for", "loop_for"]
