"""Runs of more than one process: workers that sample while the learner trains (METHODS 8), learners of several processes."""
