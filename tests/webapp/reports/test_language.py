"""The text of a report, piece by piece. An error is reported with its line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp.reports.language import EXAMPLES, KEYS, ReportBlock, ReportWords, pieces, problems

RANGE = "must be two numbers as in 0..1, or one of them: 0.. or ..1"
TEXT = "# One\nwords\n\n```chart\nmetric: eval/loss, reward/mean\nruns: 12, 15, 12\n\n# a remark\nseeds: apart\n```\nmore\n"


def block(body: str, kind: str = "chart") -> ReportBlock:
    (found,) = pieces(f"```{kind}\n{body}\n```")
    assert isinstance(found, ReportBlock)
    return found


def wrong(body: str, kind: str = "chart") -> list[str]:
    return [str(problem) for problem in block(body, kind).problems]


@pytest.mark.parametrize(
    ("text", "ends"),
    [("0..1", (0.0, 1.0)), ("-2.5 .. 1e3", (-2.5, 1000.0)), ("0..", (0.0, None)), ("..1", (None, 1.0))],
)
def test_a_range_has_two_ends_or_one(text, ends):
    assert block(f"metric: a\nruns: 1\nrange: {text}").given["range"] == ends


def test_words_and_blocks_stand_in_their_order_with_their_lines():
    first, chart, last = pieces(TEXT)
    assert (first, last) == (ReportWords(1, "# One\nwords\n"), ReportWords(11, "more\n"))
    assert isinstance(chart, ReportBlock) and (chart.kind, chart.line, chart.problems) == ("chart", 4, ())
    assert chart.given == {"metric": ("eval/loss", "reward/mean"), "runs": (12, 15), "seeds": "apart"}
    assert chart.lines == {"metric": 5, "runs": 6, "seeds": 9}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("metrc: a\nruns: 1", "Line 2: A block “chart” has no “metrc”. Did you mean metric?"),
        ("metric: a\nmetric: b\nruns: 1", "Line 3: “metric” is already in line 2."),
        ("metric: a\nruns: twelve", "Line 3: “runs”: 1 to 1,000 numbers of runs, as in their addresses, separated by commas: 12, 15."),
        ("metric: a\nruns:", "Line 3: “runs” has no value."),
        ("metric\nruns: 1", "Line 2: “metric” is not a line of a block “chart”. Write a key, a colon and a value: metric: eval/rubric_score."),
        ("metric: a\nruns: 1\nscale: cubic", "Line 4: “scale”: must be linear or log."),
        ("metric: a\nruns: 1\nsmoothing: 1", "Line 4: “smoothing”: must be a number from 0 to 0.95."),
        *(
            (f"metric: a\nruns: 1\nrange: {ends}", f"Line 4: “range”: {RANGE}.")
            for ends in ("1", "1..0", "1..1", "..", "0..1..2", "a..b", "0..inf", "nan..1")
        ),
        ("runs: 1", "Line 1: This block needs “metric”: one or several, a chart for each."),
        ("metric: a", "Line 1: This block needs runs: write one of runs, query, view, comparison."),
        ("metric: a\nruns: 1\nquery: x", "Line 1: This block has runs and query. Keep only one of them."),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_at_its_line(body, told):
    assert wrong(body) == [told]


@pytest.mark.parametrize(
    ("kind", "body", "told"),
    [
        ("runs", "query: x\nmost: 101", "Line 3: “most”: must be a whole number from 1 to 100."),
        ("runs", "columns: state", "Line 1: This block needs runs: write one of runs, query, view, comparison."),
        ("rollout", "run: 1\nstep: 2", "Line 1: This block needs “prompt”: the number of the prompt, as the page Rollouts counts them."),
        ("rollout", "run: 1\nstep: 2\nprompt: 0", "Line 4: “prompt”: must be a whole number from 1 to 2,147,483,647."),
        ("rollout", "run: 1\nstep: 2\nprompt: 1\nphase: test", "Line 5: “phase”: must be train or eval."),
    ],
)  # fmt: skip
def test_what_is_wrong_with_tables_and_rollouts_is_told_too(kind, body, told):
    assert wrong(body, kind) == [told]


@pytest.mark.parametrize(
    ("named", "body", "meant"),
    [
        ("table", "query: state:finished", "runs"),
        ("plot", "metric: a\nruns: 1", "chart"),
        ("rollouts", "run: 1", "rollout"),
    ],
)
def test_a_block_by_another_name_is_not_taken_for_code(named, body, meant):
    assert wrong(body, named) == [f"Line 1: There is no block “{named}”. Write ```{meant} if you mean one."]


def test_code_may_have_such_a_name():
    for code in ("```table\n| a | b |\n```", "```graph\na: b\n```", "```table"):
        assert pieces(code) == [ReportWords(1, code)]


def test_a_block_without_an_end_says_so_and_swallows_no_word():
    (found,) = pieces("```chart\nmetric: a\n\nwords")
    assert [str(each) for each in problems([found])] == [
        "Line 1: This block has no end. Write ``` on its own line after it."
    ]


def test_the_address_of_a_comparison_stands_for_its_runs_or_its_query():
    assert block("metric: a\ncomparison: https://x.example/runs/compare?ids=3%2C4&baseline=3").given["runs"] == (3, 4)
    assert block("metric: a\ncomparison: /runs/compare?q=tag%3Aold").given["query"] == "tag:old"
    assert wrong("metric: a\ncomparison: /runs/3")


def test_blocks_within_another_fence_and_other_languages_are_words():
    shown = "````\n```chart\nmetric: a\n```\n````"
    code = "```python\nprint(1)\n```\n~~~\n```chart\n~~~"
    assert pieces(shown) == [ReportWords(1, shown)] and pieces(code) == [ReportWords(1, code)]


def test_the_examples_of_the_editor_can_be_read():
    assert set(EXAMPLES) == set(KEYS)
    for example in EXAMPLES.values():
        assert problems(pieces(example)) == []


FRAGMENTS = st.sampled_from(
    ["```chart", "```", "~~~", "````", "metric: a", "runs: 1", "words", "", " ", "query: :", "ümlaut: 𝄞"]
)


@given(st.lists(st.one_of(FRAGMENTS, st.text(max_size=20)), max_size=30).map("\n".join))
def test_any_text_can_be_read(text):
    for part in pieces(text):
        assert 1 <= part.line <= text.count("\n") + 1
