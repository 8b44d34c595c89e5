"""Runs of one seed count once, and a run without a seed is no run of any seed."""

from webapp.experiments.table.seeds import by_seed, one_each


def test_a_seed_counts_once_with_the_mean_of_its_runs():
    seeds, values = [0.0, 0.0, 1.0, 2.0], [0.25, 0.75, None, 0.5]
    assert by_seed(seeds, values) == {0.0: 0.5, 1.0: None, 2.0: 0.5}
    assert one_each(seeds, values) == [0.5, None, 0.5]


def test_a_run_without_a_seed_is_not_taken_for_one_of_seed_minus_one():
    """Other programs log such a seed for "by chance"."""
    seeds, values = [None, -1.0, -1.0, None], [1.0, 0.25, 0.75, None]
    assert by_seed(seeds, values) == {-1.0: 0.5}
    assert one_each(seeds, values) == [0.5, 1.0, None]
