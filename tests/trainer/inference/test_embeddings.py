"""Sentence embeddings compared with those of plain transformers, one text at a time."""

from typing import Any

import pytest
import torch

from trainer.inference import embeddings
from trainer.inference.embeddings import Embedder
from trainer.inference.models import ModelInvalid
from trainer.inference.products import lays_out


@pytest.fixture(scope="module")
def embed() -> Embedder:
    try:
        return Embedder()
    except ModelInvalid as error:
        pytest.skip(str(error))


def test_a_text_has_the_same_vector_beside_any_others(embed: Embedder) -> None:
    texts = ["The answer is false.", "It names no source", "", "polite", "The answer is false.", "word " * 400] * 12
    vectors = embed(texts)
    for text, vector in list(zip(texts, vectors, strict=True))[:6]:
        tokens = embed._tokenizer(text, truncation=True, max_length=256, return_tensors="pt")
        with torch.inference_mode():
            alone = torch.nn.functional.normalize(embed._model(**tokens).last_hidden_state.mean(1), dim=-1)[0]
        torch.testing.assert_close(vector, alone, atol=1e-6, rtol=0)
    assert torch.equal(vectors[0], vectors[4]) and vectors.shape == (72, embed._model.config.hidden_size)


def test_nothing_is_padded(embed: Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    shapes: list[tuple[int, int]] = []
    mean = embeddings._mean

    def seen(last_BTH: Any, tokens_BT: torch.Tensor) -> torch.Tensor:
        shapes.append((tokens_BT.shape[0], tokens_BT.shape[1]))
        return mean(last_BTH, tokens_BT)

    monkeypatch.setattr(embeddings, "_mean", seen)
    texts = ["one", "one two", "two"] * 600
    lengths = [len(tokens) for tokens in embed._tokenizer(texts)["input_ids"]]
    embed(texts)
    assert sum(rows * tokens for rows, tokens in shapes) == sum(lengths) and max(rows for rows, _ in shapes) > 500
    assert all(rows * tokens <= 3072 for rows, tokens in shapes)


def test_many_texts_have_the_vectors_of_few_and_leave_the_model_as_it_was(embed: Embedder) -> None:
    """With many texts, copies of the weights are laid out for the time of the call, and the layers take fewer passes."""
    texts = [f"The {which} answer names {number} sources." for which in ("first", "second") for number in range(200)]
    few = torch.cat([embed(texts[start : start + 20]) for start in range(0, len(texts), 20)])
    torch.testing.assert_close(embed(texts), few, atol=1e-6, rtol=0)
    assert not any("forward" in vars(part) for part in embed._model.modules())


@pytest.mark.parametrize(("precision", "most"), [("float32", 1e-6), ("bfloat16", 4e-3)])
def test_the_fewer_passes_give_what_the_model_gives(precision: Any, most: float) -> None:
    """In bfloat16, fewer passes round less often. The results are no further from float32 than those of the model itself."""
    try:
        narrow, wide = Embedder(precision), Embedder()
    except ModelInvalid as error:
        pytest.skip(str(error))
    if not lays_out(narrow._model):
        pytest.skip("oneDNN does not multiply in this precision here")
    texts = ["no", "word " * 300, *(f"The {which} answer names {'many ' * which}sources." for which in range(12))] * 14
    own = torch.cat([narrow(texts[start : start + 14]) for start in range(0, 42, 14)])
    found = narrow(texts)
    torch.testing.assert_close(found[:42], own, atol=most, rtol=0)
    exact = wide(texts[:14])
    assert (found[:14] - exact).abs().mean() <= 1.1 * (own[:14] - exact).abs().mean() + 1e-7


def test_no_texts_have_no_vectors(embed: Embedder) -> None:
    assert embed([]).shape == (0, embed._model.config.hidden_size)
