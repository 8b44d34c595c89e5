"""Metrics of many responses to one prompt, by hand and compared with brute force."""

import itertools
import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.metrics import policy
from trainer.metrics.estimate import proportion, resamples


def test_pass_at_k_by_hand() -> None:
    # 4 responses, 1 correct, 2 drawn: 3 of the 6 pairs contain it
    assert policy.pass_at_k(4, 1, 2) == 0.5
    assert policy.pass_at_k(4, 0, 4) == 0
    assert policy.pass_at_k(4, 3, 2) == 1
    assert policy.pass_at_k(10**4, 1, 100) == pytest.approx(0.01)


@pytest.mark.parametrize(("n", "c", "k"), [(4, 5, 1), (4, -1, 1), (4, 1, 0), (4, 1, 5)])
def test_pass_at_k_refuses_what_has_no_estimate(n: int, c: int, k: int) -> None:
    with pytest.raises(ValueError, match="responses"):
        policy.pass_at_k(n, c, k)


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=7), st.data())
def test_best_of_n_is_the_mean_over_all_draws(scores: list[float], data: st.DataObject) -> None:
    n = data.draw(st.integers(1, len(scores)))
    expected = np.mean([max(draw) for draw in combinations(scores, n)])
    assert policy.best_of_n(scores, n) == pytest.approx(float(expected), abs=1e-12)


def test_best_of_n_of_right_and_wrong_is_pass_at_n() -> None:
    for n in range(1, 7):
        assert policy.best_of_n([1, 0, 0, 1, 0, 0], n) == pytest.approx(policy.pass_at_k(6, 2, n))


def test_best_of_n_does_not_guess_a_missing_score() -> None:
    with pytest.raises(ValueError, match="missing"):
        policy.best_of_n([1, math.nan], 1)


def test_entropy() -> None:
    # uniform over 4; certain; one half, one half and an impossible token
    found = policy.entropy([[0, 0, 0, 0], [1000, 0, 0, 0], [5, 5, -math.inf, -math.inf]])  # type: ignore[arg-type]
    assert found.tolist() == pytest.approx([math.log(4), 0, math.log(2)])


def test_novelty_by_hand() -> None:
    # means of the differences: log 3, log 20, 0; the empty response has none
    found = policy.novelty(
        [[math.log(3), math.log(3)], [math.log(20)], [-1.0, -2.0], []], [[0, 0], [0], [-2.0, -1.0], []]
    )
    assert found.ratios == pytest.approx((3, 20, 1))
    assert found.median == pytest.approx(3)
    assert found.above == {2.0: 2, 10.0: 1, 100.0: 0}
    assert math.isnan(policy.novelty([[]], [[]]).median)
    with pytest.raises(ValueError, match=r"logp_initial\[0\]: 1 tokens, logp has 2"):
        policy.novelty([[0, 0]], [[0]])


def test_self_bleu_diversity() -> None:
    same = ["the cat sat on the mat today"] * 3
    assert policy.self_bleu_diversity(same) == pytest.approx(0, abs=1e-12)
    different = ["alpha beta gamma delta", "one two three four", "red green blue black"]
    assert policy.self_bleu_diversity(different) > 0.9
    half = ["the cat sat on the mat", "the cat sat on a chair", "my dog ran to the park"]
    assert 0.3 < policy.self_bleu_diversity(half) < 0.9
    assert math.isnan(policy.self_bleu_diversity(["alone"]))


@given(st.integers(2, 6), st.integers(0, 99))
def test_embedding_diversity_is_the_mean_over_pairs(count: int, seed: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(count, 5))
    pairs = [1 - a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in combinations(vectors, 2)]
    assert policy.embedding_diversity(vectors) == pytest.approx(np.mean(pairs), abs=1e-12)


def test_embedding_diversity_at_its_ends() -> None:
    assert policy.embedding_diversity([[1, 0], [2, 0]]) == pytest.approx(0)
    assert policy.embedding_diversity([[1, 0], [-3, 0]]) == pytest.approx(2)
    assert math.isnan(policy.embedding_diversity([[1, 0]]))
    with pytest.raises(ValueError, match=r"embeddings\[1\]"):
        policy.embedding_diversity([[1, 0], [0, 0]])


def test_pass_at_k_over_prompts() -> None:
    curve = policy.pass_at_k_curve([(4, 1), (4, 4), (2, 0)], [1, 2, 4, 8])
    assert curve[1].value == pytest.approx((1 / 4 + 1 + 0) / 3)
    assert curve[2].value == pytest.approx((1 / 2 + 1 + 0) / 3)
    assert (curve[4].value, curve[4].n, curve[4].missing) == (1.0, 2, 1)
    assert curve[8].undefined == "no prompt has 8 responses"


def test_best_of_n_over_prompts_leaves_out_responses_without_a_score() -> None:
    curve = policy.best_of_n_curve([[0.0, 1.0, None], [0.5]], [1, 2, 3])
    assert curve[1].value == pytest.approx(0.5)
    assert (curve[2].value, curve[2].missing) == (1.0, 1)
    assert curve[3].undefined == "no prompt has 3 scored responses"


def test_average_at_k() -> None:
    found = policy.average_at_k([[0, 1], [1, None], [None]])
    assert (found.value, found.n, found.missing) == (0.75, 2, 1)


def test_rubric_scores_raw_and_clipped() -> None:
    found = policy.rubric_scores([-1.0, 1.0, 0.5, None], ["p", "p", "q", "q"])
    assert found["raw"].value == pytest.approx(0.5 / 3) and found["clipped"].value == pytest.approx(0.5)
    assert (found["raw"].n, found["raw"].missing) == (3, 1)
    assert policy.rubric_scores([None], ["p"])["raw"].undefined == "no response has a score"


def test_win_rate_counts_half_of_the_ties() -> None:
    found = policy.win_rate([1, 1, 0, -2, None], prompts=list("abcde"))
    assert (found.rate.value, found.rate.missing) == (2.5 / 4, 1)
    assert (found.won, found.tied, found.lost) == (2, 1, 1)
    assert policy.win_rate([None]).rate.undefined == "no comparison has a verdict"


def test_mean_length_and_diversity() -> None:
    assert policy.mean_length([10, 20, 60], ["p", "p", "q"]).value == 30
    found = policy.diversity([["same words here now"] * 2, ["alone"]])
    assert (found.value, found.missing) == (pytest.approx(0, abs=1e-12), 1)


@given(st.lists(st.floats(0.01, 100), min_size=2, max_size=9), st.integers(0, 99))
def test_weighted_medians_are_the_medians_of_the_resamples(values: list[float], seed: int) -> None:
    ordered = np.sort(values)
    counts = np.random.default_rng(seed).multinomial(len(values), np.full(len(values), 1 / len(values)), size=5)
    expected = [np.median(np.repeat(ordered, row)) for row in counts]
    assert policy._weighted_median(ordered, counts.astype(float)).tolist() == pytest.approx(expected)


def test_novelty_as_estimates() -> None:
    found = policy.novelty_of([1.0, 3.0, 20.0])
    assert policy.median_novelty(found, "abc").value == 3
    assert policy.novel_shares(found, "abc")[2.0] == proportion(2, 3)
    assert policy.median_novelty(policy.novelty_of([]), []).undefined == "no response has a token"


def test_the_interval_of_novelty_draws_prompts_whole() -> None:
    """Of two prompts, one is drawn twice in half of the resamples: a quarter of them has only the five, a quarter only the nine."""
    found = policy.novelty_of([1.0, 9.0, 1.0, 1.0, 1.0, 1.0])
    together = policy.median_novelty(found, "pqpppp")
    assert (together.value, together.n, together.low, together.high) == (1.0, 6, 1.0, 9.0)
    assert (
        policy.median_novelty(found, range(6)).high == 5.0
    )  # three nines of six responses: 5% of resamples, four: 0.9%
    share = policy.novel_shares(found, "pqpppp")[2.0]
    assert (share.value, share.n, share.low, share.high) == (pytest.approx(1 / 6), 6, 0.0, 1.0)
    alone = policy.median_novelty(found, "pppppp"), policy.novel_shares(found, "pppppp")[2.0]
    assert {(each.low, each.high, each.interval) for each in alone} == {(None, None, "one group has no spread")}
    assert policy.median_novelty(policy.novelty_of([3.0]), "p").interval == "one case has no spread"


def test_the_interval_of_novelty_is_that_of_prompts_drawn_by_hand() -> None:
    draw = np.random.default_rng(5)
    prompts = np.repeat(np.arange(40), draw.integers(1, 12, 40))
    rho = np.exp(draw.normal(size=40)[prompts] + 0.2 * draw.normal(size=len(prompts)))
    mixed = draw.permutation(len(prompts))
    found = policy.median_novelty(policy.novelty_of(rho[mixed].tolist()), prompts[mixed].tolist())
    by_prompt = [rho[prompts == prompt] for prompt in dict.fromkeys(prompts[np.argsort(rho)])]
    counts = np.concatenate(list(resamples(40))).astype(int)
    drawn = [np.median(np.concatenate([np.tile(by_prompt[at], n) for at, n in enumerate(row)])) for row in counts]
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])), rel=1e-12)
    assert found.low is not None and found.high is not None
    alone = policy.median_novelty(policy.novelty_of(rho.tolist()), range(len(rho)))
    assert alone.low is not None and alone.high is not None
    assert found.high - found.low > 1.5 * (alone.high - alone.low)


def test_gain_where_novelty_is_highest() -> None:
    rho = {str(i): float(i) for i in range(20)}
    before = dict.fromkeys(rho, 0.0)
    found = policy.gain_at_novelty(rho, {**before, "19": 1.0, "18": None}, before)
    assert (found.value, found.n, found.missing) == (1.0, 1, 1)


@pytest.mark.parametrize("scores", [[0.2, 1.0, 0.5, 0.9], [0.1, 0.3], [1.0, 1.0, 0.8], [0.7]])
def test_rejection_sampling_is_the_mean_over_all_orders(scores: list[float]) -> None:
    for n in range(1, len(scores) + 1):
        kept, drawn = [], []
        for order in itertools.permutations(scores):
            first = next((at for at, score in enumerate(order[:n]) if score >= 0.8), n - 1)
            kept.append(order[first])
            drawn.append(first + 1)
        found = policy.rejection_sampling(scores, n, 0.8)
        assert (found.score, found.drawn) == pytest.approx((np.mean(kept), np.mean(drawn)))
        assert found.score <= policy.best_of_n(scores, n) + 1e-12


def test_rejection_sampling_counts_the_prompts_that_lack_responses() -> None:
    found = policy.rejection_curve([[0.0, 1.0], [None, 1.0]], [1, 2], 1.0)
    score, drawn = found[2]
    assert (score.value, score.missing, drawn.value, drawn.missing) == (1.0, 1, 1.5, 1)
    assert found[1][0].value == pytest.approx(0.75) and found[1][1].value == 1.0
    with pytest.raises(ValueError, match="3 drawn from 2"):
        policy.rejection_sampling([0.0, 1.0], 3, 1.0)
    with pytest.raises(ValueError, match="one is missing"):
        policy.rejection_sampling([math.nan], 1, 1.0)


def test_scores_of_the_most_novel_responses() -> None:
    rho = [1.0] * 18 + [5.0, 9.0]
    scores: list[float | None] = [0.25] * 17 + [None, 1.0, 0.5]
    high, rest = policy.scores_by_novelty(rho, scores, [at // 2 for at in range(20)])
    assert (high.value, high.n, high.missing) == (0.75, 2, 0)
    assert (rest.value, rest.n, rest.missing) == (0.25, 17, 1)
    alone, nothing = policy.scores_by_novelty([2.0], [0.5], ["a"])
    assert alone.value == 0.5 and nothing.undefined == "no response has a score"
