"""Log-probabilities by blocks: the numbers and gradients of the written-out softmax, with less memory."""

import os
import subprocess
import sys
import textwrap
from typing import Any

import pytest
import torch
from torch import Tensor

from trainer.loops.learner import head

TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-5}


def plain(hidden: Tensor, weight: Tensor, tokens: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    logp = torch.log_softmax(hidden @ weight.T / temperature, -1)
    return logp.gather(-1, tokens[:, None])[:, 0], -(logp.exp() * logp).sum(-1)


def case(dtype: torch.dtype, trained: bool, rows: int = 37) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Hidden states, head, tokens, and a weight in the loss for each log-probability."""
    draw = torch.Generator().manual_seed(rows)
    hidden = torch.randn(rows, 16, dtype=dtype, generator=draw).requires_grad_()
    weight = torch.randn(101, 16, dtype=dtype, generator=draw).requires_grad_(trained)
    return hidden, weight, torch.randint(101, (rows,), generator=draw), torch.randn(rows, dtype=dtype, generator=draw)


@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
@pytest.mark.parametrize("trained", [False, True], ids=["frozen head", "trained head"])
def test_values_and_gradients_are_those_of_the_whole_softmax(
    dtype: torch.dtype, trained: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(head, "_ROWS", 8)  # five blocks; the last one is short
    hidden, weight, tokens, pull = case(dtype, trained)
    logp, entropy = head.log_probs(hidden, weight, tokens, 0.7)
    wanted = [hidden, weight] if trained else [hidden]
    ours = torch.autograd.grad((logp * pull).sum(), wanted)
    expected_logp, expected_entropy = plain(hidden, weight, tokens, 0.7)
    expected = torch.autograd.grad((expected_logp * pull).sum(), wanted)
    limit: dict[str, Any] = {"atol": TOLERANCE[dtype], "rtol": TOLERANCE[dtype]}
    assert logp.dtype == dtype and not entropy.requires_grad
    torch.testing.assert_close(logp, expected_logp, **limit)
    torch.testing.assert_close(entropy, expected_entropy, **limit)
    for mine, other in zip(ours, expected, strict=True):
        torch.testing.assert_close(mine, other, **limit)


def test_finite_differences_confirm_the_trained_head() -> None:
    hidden, weight, tokens, _ = case(torch.float64, True, rows=5)
    assert torch.autograd.gradcheck(lambda h, w: head.log_probs(h, w, tokens, 1.3)[0], (hidden, weight))


def test_a_tied_head_gets_the_gradient_of_both_its_uses() -> None:
    _, weight, tokens, pull = case(torch.float64, True)

    def gradient(of: object) -> Tensor:
        logp, _ = of(weight[tokens.roll(1)] * 2.0, weight, tokens, 1.0)  # type: ignore[operator]
        (found,) = torch.autograd.grad((logp * pull).sum(), weight)
        return found

    torch.testing.assert_close(gradient(head.log_probs), gradient(plain), atol=1e-9, rtol=1e-9)


def test_without_gradients_nothing_is_kept_and_the_numbers_are_the_same() -> None:
    hidden, weight, tokens, _ = case(torch.float64, True)
    with torch.no_grad():
        logp, entropy = head.log_probs(hidden, weight, tokens, 0.7)
    again, entropy_again = head.log_probs(hidden, weight, tokens, 0.7)
    assert not logp.requires_grad
    assert torch.equal(logp, again) and torch.equal(entropy, entropy_again)


def test_a_bfloat16_head_is_summed_up_in_float32() -> None:
    hidden, weight, tokens, _ = case(torch.bfloat16, True)
    logp, entropy = head.log_probs(hidden, weight, tokens, 1.0)
    assert logp.dtype == entropy.dtype == torch.float32
    logp.sum().backward()
    assert hidden.grad is not None and hidden.grad.dtype == torch.bfloat16
    assert weight.grad is not None and weight.grad.dtype == torch.bfloat16


def test_the_logits_of_all_tokens_never_exist_at_once() -> None:
    """2,048 x 16,384 float32 logits are 128 MiB. The plain way holds several such tensors, our way a block of 256 rows. The growth of a
    process's peak memory by log-probabilities and their gradient shows it. Our way is measured first, because a peak only grows.
    """
    program = """
        import pathlib, re, torch
        from trainer.loops.learner import head
        def peak():
            status = pathlib.Path("/proc/self/status").read_text()  # not getrusage, which starts at the parent's peak
            return int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) / 1024
        def plain(hidden, weight, tokens, temperature):
            return torch.log_softmax(hidden @ weight.T / temperature, -1).gather(-1, tokens[:, None])[:, 0], None
        hidden, weight = torch.randn(2048, 64, requires_grad=True), torch.randn(16384, 64, requires_grad=True)
        tokens = torch.randint(16384, (2048,))
        for call in (head.log_probs, plain):
            call(hidden[:8], weight, tokens[:8], 1.0)[0].sum().backward()  # what libraries allocate once
            before = peak()
            call(hidden, weight, tokens, 1.0)[0].sum().backward()
            print(peak() - before)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    # Every freed block goes back to the system immediately, so the peak is that of the living tensors.
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "100000"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300, env=environment)
    ours, plain = map(float, done.stdout.split())
    assert ours < 100 and plain > 256
