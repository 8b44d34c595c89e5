"""The unit of rows is measured: whatever a processor's library does, rows of all passes have the same bits."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import linear

from trainer.inference import batch_invariance


def model(*sizes: tuple[int, int]) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Linear(size_in, size_out, bias=False) for size_in, size_out in sizes))


@pytest.mark.parametrize("most", [4, 24, 64])
def test_passes_of_all_multiples_give_a_row_the_same_bits(most: int) -> None:
    layers: Any = model((64, 128), (128, 64), (576, 192))
    unit = batch_invariance.unit_of_rows(layers, most)
    rows = -(-most // unit) * unit
    for layer in layers:
        x = torch.randn(rows, layer.in_features)
        with torch.inference_mode():
            results = {layer(x[:count])[:4].numpy().tobytes() for count in range(unit, rows + 1, unit)}
        assert len(results) == 1


def test_a_library_that_changes_its_sums_at_sixteen_rows_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = linear

    def changes(x, weight):
        return plain(x, weight) if len(x) >= 16 else plain(x.double(), weight.double()).float()

    monkeypatch.setattr(batch_invariance, "linear", changes)
    assert batch_invariance.unit_of_rows(model((64, 64)), 64) == 16
    monkeypatch.setattr(batch_invariance, "linear", lambda x, weight: plain(x, weight) * (1 + len(x) * 1e-5))
    assert batch_invariance.unit_of_rows(model((64, 64)), 64) == 64, "each number of rows has its own sums"
