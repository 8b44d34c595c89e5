"""Processes compute alike, and a GPU is warned of where it would be refused."""

from collections.abc import Iterator

import pytest
import torch

from trainer.arithmetic import settle_arithmetic


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    threads, strict = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    warned = torch.is_deterministic_algorithms_warn_only_enabled()
    yield
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(strict, warn_only=warned)


@pytest.mark.parametrize("card", [False, True])
def test_a_kernel_without_a_deterministic_form_is_refused_on_a_processor_and_warned_of_on_a_card(
    card: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The nucleus of a draw takes `cumsum`, which has none on CUDA: workers would end at their first token."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: card)
    settle_arithmetic(1)
    assert torch.are_deterministic_algorithms_enabled()
    assert torch.is_deterministic_algorithms_warn_only_enabled() == card
    assert torch.get_num_threads() == 1


def test_threads_come_from_the_environment_where_nobody_names_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    settle_arithmetic()
    assert torch.get_num_threads() == 2
