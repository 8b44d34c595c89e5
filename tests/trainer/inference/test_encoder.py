"""Attention of the encoder compared with torch's own softmax."""

import pytest
import torch

from trainer.inference.encoder import _by_softmax


@pytest.mark.parametrize("shift", [0.0, 200.0, -200.0])
@pytest.mark.parametrize(("length", "spread"), [(1, 5.0), (7, 5.0), (12, 30.0), (40, 100.0)])
def test_attention_is_that_of_torchs_softmax(length: int, spread: float, shift: float) -> None:
    """This also holds for scores whose exponentials float32 cannot hold, and for those that become 0."""
    torch.manual_seed(length)
    scores, value = torch.randn(24, length, length) * spread + shift, torch.randn(24, length, 32)
    asked = torch.bmm(scores.softmax(-1), value)
    torch.testing.assert_close(_by_softmax(scores.clone(), value), asked, atol=5e-6, rtol=1e-5)


def test_attention_in_bfloat16_is_about_as_near_to_float32_as_torchs() -> None:
    torch.manual_seed(0)
    scores, value = (torch.randn(240, 12, size) * 2 for size in (12, 32))
    narrow, values = scores.bfloat16(), value.bfloat16()
    exact = torch.bmm(narrow.float().softmax(-1), values.float())
    torchs = torch.bmm(narrow.softmax(-1), values)
    ours = _by_softmax(narrow.clone(), values)
    assert (ours - exact).abs().mean() <= 1.5 * (torchs - exact).abs().mean()
