"""The index of words finds the same examples as a search in every text, for examples from any source."""

import numpy as np
import pyarrow as pa
import pytest
from django.db import connection
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from tests.team import make_team
from trainer.contracts import Example
from webapp.datasets.columns.filters import parse
from webapp.datasets.exploration import narrowing
from webapp.datasets.index import builder, postings, tokenizer
from webapp.datasets.index.tokenizer import indexed_text
from webapp.datasets.ingest import reader
from webapp.datasets.models import Dataset, WordHits
from webapp.datasets.versions import services

from ..conftest import row

TEXTS = st.lists(
    st.sampled_from(["key1", "key11", "apple", "apply", "ape", "Äpfel", "天空蓝", "天空", "sky", "x"]), max_size=5
).map(" ".join)


def example(key, text):
    return Example.model_validate({"key": key, "prompt": [{"role": "user", "content": text or "-"}]})


def words_of(*texts):
    return builder.Words.of(pa.array(map(tokenizer.searched, texts), pa.string()))


def held(record, asked):
    """Whether the example's texts contain every word of the search. Some words are beginnings."""
    found = {word.decode() for word in words_of(record.key, indexed_text(record)).each.to_pylist()} - {""}
    return all(
        any(each.startswith(word) if prefix else each == word for each in found)
        for word, prefix in tokenizer.terms(asked)
    )


class SameAsLooking(TestCase):
    @settings(max_examples=40, deadline=None)
    @given(
        texts=st.lists(TEXTS, min_size=1, max_size=12), asked=TEXTS.filter(bool), block=st.sampled_from([4, 1 << 16])
    )
    def test_a_search_finds_what_looking_through_every_text_finds(self, texts, asked, block):
        team = make_team()
        dataset = Dataset.objects.create(workspace=team.workspace, name="Words")
        records = [example(f"key{i}", text) for i, text in enumerate(texts)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(postings, "BLOCK", block)
            version = services.new_version(team.researcher, dataset, records, None, {"from": "run"})
            found = narrowing.positions(version, parse({"q": asked}))
        assert found == [i for i, record in enumerate(records) if held(record, asked)]


def test_an_import_writes_the_same_words_as_every_other_way(import_rows, team, monkeypatch):
    monkeypatch.setattr(reader, "ROWS", 3)
    monkeypatch.setattr(postings, "BLOCK", 8)  # several blocks, and batches that lie in two blocks
    rows = [row(f"e{i}", prompt=f"word{i % 3} all") for i in range(20)]
    version = import_rows(rows, name="imported", format="touchstone").version
    for asked, expected in (("word1", 7), ("word", 20), ("all word2", 6), ("e11", 1), ("nothing", 0)):
        assert narrowing.count(version, parse({"q": asked})) == expected, asked


def test_examples_that_were_there_are_not_indexed_again(import_rows):
    rows = [row(f"e{i}") for i in range(4)]
    import_rows(rows)
    before = WordHits.objects.count()
    again = import_rows([*rows, row("e9", prompt="unheard")]).version
    assert set(
        WordHits.objects.order_by("-id").values_list("word", flat=True)[: WordHits.objects.count() - before]
    ) == {
        "unheard",
    }
    assert narrowing.count(again, parse({"q": "prompt"})) == 4


def test_a_very_long_word_is_found_by_what_is_kept_of_it(import_rows):
    long = "é" * 70
    version = import_rows([row("e1", prompt=f"{long} and {long}"), row("e2", prompt="x" * 70)]).version
    for asked, expected in ((long, 1), ("é" * 64, 1), ("x" * 70, 1), ("x" * 10, 1)):
        assert narrowing.count(version, parse({"q": asked})) == expected
    # two bytes for one example, however often it contains the word
    assert len(WordHits.objects.get(word="e" * 64).offsets) == 2


def test_a_key_is_found_whole_and_by_its_beginning(import_rows):
    keys = ["3f9ac2d417", "3f9ac8", "3F9AC9", "pair 3f9a", "3f9", "3f"]
    version = import_rows([row(key, prompt="same") for key in keys], format="touchstone").version
    found = lambda asked: {keys[i] for i in narrowing.positions(version, parse({"q": asked}))}  # noqa: E731
    assert found("3f9ac2d417") == found("3f9ac2") == {"3f9ac2d417"}
    assert found("3F9a") == {"3f9ac2d417", "3f9ac8", "3F9AC9", "pair 3f9a"}
    # for keys that are one word, short beginnings would find too many
    assert found("3f9") == {"3f9", "3F9AC9", "pair 3f9a"}
    assert found("same 3f") == {"3f", "3F9AC9", "pair 3f9a"}
    assert not WordHits.objects.filter(word="3f9ac8").exists()


def test_a_refused_import_leaves_no_words(import_rows):
    import_rows([*(row(f"e{i}") for i in range(4)), {"key": "broken"}])
    assert not WordHits.objects.exists()


def test_arrays_are_kept_as_they_are_and_words_in_the_order_of_their_bytes(import_rows):
    import_rows([row(f"e{i}") for i in range(4)])
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attstorage FROM pg_attribute WHERE (attrelid, attname) IN "
            "(('datasets_wordhits'::regclass, 'offsets'), ('datasets_packedcolumn'::regclass, 'data'))"
        )
        assert cursor.fetchall() == [("e",), ("e",)]
    found = postings.holding(Dataset.objects.get().pk, "prompt", False)
    assert len(np.unique(found)) == 4


def test_texts_without_any_word_are_indexed_as_nothing(import_rows):
    version = import_rows([row("!", prompt="?"), row("...", prompt="—")]).version
    assert version.counts["examples"] == 2 and not WordHits.objects.exists()
    assert narrowing.count(version, parse({"q": "word"})) == 0


def test_words_of_a_batch_are_cut_as_each_text_is():
    texts = ["One two", "", "  two,\tthree\n", "天空 Äpfel", "...", "three-FOUR_5"]
    found = words_of(*texts)
    each = iter(found.each.to_pylist())
    here = [{next(each).decode() for _ in range(n)} - {""} for n in found.lengths]
    assert here == [set(tokenizer.tokens(text)) | ({"空"} if "天空" in text else set()) for text in texts]


@pytest.mark.parametrize("bits", [32, 0])  # pairs of 32 bits, and of 64 bits if 32 are not enough
def test_a_group_has_each_word_once_with_its_texts(monkeypatch, bits):
    monkeypatch.setattr(builder, "NARROW", bits)
    gatherer = builder.Gatherer()
    assert gatherer.add(pa.array(["b a b", "", "...", "a c"])) is None
    assert gatherer.add(pa.array([f"w{i} a" for i in range(40)])) is None
    group = gatherer.rest()
    starts = [0, *group.ends.tolist()]
    places = {word: group.places[starts[i] : starts[i + 1]].tolist() for i, word in enumerate(group.words)}
    assert places.pop(b"a") == [0, 3, *range(4, 44)]
    assert places.pop(b"b") == [0] and places.pop(b"c") == [3] and places.pop(b"") == []
    assert places == {f"w{i}".encode(): [4 + i] for i in range(40)}
    assert gatherer.rest() is None
