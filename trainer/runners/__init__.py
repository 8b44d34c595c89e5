"""Runs of more than one process: workers that sample while the learner trains, and learners of several processes."""
