"""Arrow arrays that are made of their buffers equal those that Arrow itself makes, and need no pandas."""

import subprocess
import sys
from itertools import compress

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp.datasets.encoding import arrow

LOADED = """
import sys, pickle, numpy as np
from webapp.datasets.columns import prefilter
from webapp.datasets.encoding import arrow
from webapp.datasets.index import builder
texts = pickle.loads(pickle.dumps(arrow.texts(["One two", "", "drei"])))
gatherer = builder.Gatherer()
gatherer.add(arrow.only(texts, np.array([True, False, True])))
assert gatherer.rest().size == 2 and list(prefilter.signs_of(arrow.texts(["maybe"])))[0].tone
sys.exit("pandas" in sys.modules)
"""


@given(st.lists(st.text()))
def test_texts_are_what_arrow_makes_of_them(values):
    made = arrow.texts(values)
    made.validate(full=True)
    assert made.equals(pa.array(values, pa.string()))


def test_half_a_character_is_no_text():
    with pytest.raises(ValueError, match="surrogates"):
        arrow.texts(["whole", "\ud800"])


@given(st.lists(st.tuples(st.text(max_size=3), st.booleans()), min_size=1))
def test_only_what_is_kept_stays(rows):
    values, kept = zip(*rows, strict=True)
    found = arrow.only(arrow.texts(values), np.array(kept))
    assert found.to_pylist() == list(compress(values, kept))


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64(), pa.uint8()])
def test_numbers_are_read_from_where_the_array_begins(kind):
    array = pa.array([1, 2, 3, 4], kind)
    assert arrow.numbers(array).tolist() == [1, 2, 3, 4]
    assert arrow.numbers(array.slice(1, 2)).tolist() == [2, 3]


def test_it_loads_no_pandas():
    assert subprocess.run([sys.executable, "-c", LOADED]).returncode == 0
