"""Drawing tokens, compared with distributions that were worked out by hand."""

import math

import pytest
import torch

from trainer.inference.draw import draw_tokens, nucleus_log_probs, uniforms

LOGITS = torch.tensor([[math.log(0.5), math.log(0.3), math.log(0.15), math.log(0.05)]])


def draw(uniform: float, temperature: float = 1.0, top_p: float = 1.0) -> tuple[int, float]:
    tokens, logprobs = draw_tokens(LOGITS, torch.tensor([uniform]), temperature, top_p)
    return int(tokens[0]), float(logprobs[0])


def test_a_uniform_picks_the_token_whose_share_of_the_line_it_falls_in() -> None:
    assert [draw(u)[0] for u in (0.0, 0.49, 0.51, 0.79, 0.81, 0.94, 0.96, 1 - 1e-7)] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert math.isclose(draw(0.6)[1], math.log(0.3), rel_tol=1e-5)


def test_temperature_sharpens_and_its_log_probability_is_reported() -> None:
    # At temperature 1/2 the probabilities are squared: .25, .09, .0225, .0025, with a sum of .365.
    token, logprob = draw(0.69, temperature=0.5)
    assert token == 1
    assert math.isclose(logprob, math.log(0.09 / 0.365), rel_tol=1e-5)


def test_the_nucleus_is_the_smallest_set_that_reaches_top_p() -> None:
    # .5 alone is less than .7; .5 + .3 reaches it; they become .625 and .375.
    assert draw(0.62, top_p=0.7) == (0, draw(0.0, top_p=0.7)[1])
    token, logprob = draw(0.9999, top_p=0.7)
    assert token == 1
    assert math.isclose(logprob, math.log(0.375), rel_tol=1e-5)


def test_of_what_is_drawn_the_log_probability_is_found_again_and_outside_of_the_nucleus_there_is_none() -> None:
    logits = torch.randn(6, 5000, generator=torch.Generator().manual_seed(1)) * torch.tensor([[6.0], [3.0], [0.1]] * 2)
    tokens, logprobs = draw_tokens(logits, uniforms([4], 6)[0], 1.0, 0.9)
    probabilities = logits.softmax(-1)
    torch.testing.assert_close(nucleus_log_probs(probabilities, tokens, 0.9), logprobs)
    assert nucleus_log_probs(probabilities, logits.argmin(-1), 0.9).tolist() == [-math.inf] * 6


def test_rows_whose_nucleus_is_wider_than_the_first_guess_are_sorted_in_full_and_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    narrow = (torch.randn(3, 5000, generator=torch.Generator().manual_seed(0)) * 4).softmax(-1)
    probabilities = torch.cat([narrow[:2], torch.full((1, 5000), 1 / 5000), narrow[2:]])
    sort, told = torch.Tensor.sort, []
    monkeypatch.setattr(torch.Tensor, "sort", lambda self, **how: told.append(len(self)) or sort(self, **how))
    inside = [
        nucleus_log_probs(probabilities, torch.full((4,), token), 0.9)[2].isfinite() for token in range(0, 5000, 50)
    ]
    assert abs(int(sum(inside)) - 90) <= 1 and set(told) == {1}
    likely = narrow.argmax(-1)
    expected = [nucleus_log_probs(row[None], token[None], 0.9) for row, token in zip(narrow, likely, strict=True)]
    places = [0, 1, 3]
    tokens = torch.zeros(4, dtype=torch.long).index_copy(0, torch.tensor(places), likely)
    torch.testing.assert_close(nucleus_log_probs(probabilities, tokens, 0.9)[places], torch.cat(expected))


def test_tokens_of_probability_zero_are_never_drawn() -> None:
    logits = torch.tensor([[-math.inf, 0.0, -math.inf, 0.0, -math.inf]])
    drawn = {int(draw_tokens(logits, torch.tensor([u]), 1.0, 1.0)[0]) for u in (0.0, 0.3, 0.5, 0.7, 1 - 2**-24)}
    assert drawn == {1, 3}


def test_probabilities_that_are_not_numbers_give_a_token_whose_log_probability_says_so() -> None:
    for top_p in (1.0, 0.9):
        tokens, logprobs = draw_tokens(torch.full((2, 5), math.nan), torch.tensor([0.0, 0.9]), 1.0, top_p)
        assert all(0 <= token < 5 for token in tokens.tolist()) and logprobs.isnan().all()


def test_frequencies_follow_the_probabilities() -> None:
    many = 20_000
    tokens, _ = draw_tokens(LOGITS.expand(many, 4), uniforms([11], many)[0], 1.0, 1.0)
    shares = torch.bincount(tokens, minlength=4) / many
    torch.testing.assert_close(shares, torch.tensor([0.5, 0.3, 0.15, 0.05]), atol=0.015, rtol=0)


def test_each_row_draws_from_its_own_seed() -> None:
    assert torch.equal(uniforms([1, 2], 5)[1], uniforms([2], 5)[0])


def test_a_wide_nucleus_changes_no_bit_of_the_row_beside_it() -> None:
    narrow = torch.randn(1, 5000, generator=torch.Generator().manual_seed(0)) * 4
    both = torch.cat([narrow, torch.zeros(1, 5000)])
    draws = uniforms([3], 50)[0]
    for u in draws.tolist():
        alone, beside = (
            draw_tokens(narrow, torch.tensor([u]), 1.0, 0.9),
            draw_tokens(both, torch.full((2,), u), 1.0, 0.9),
        )
        assert alone[0][0] == beside[0][0] and alone[1][0] == beside[1][0]
        assert math.isclose(float(beside[1][1]), math.log(1 / 4500), rel_tol=1e-3)
