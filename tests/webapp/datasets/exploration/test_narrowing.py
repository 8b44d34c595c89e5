"""Explore: every filter finds what a person would find by reading. Counts agree with lists, and bars agree with filters."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.team import ApiClient, browser
from trainer.contracts import Example
from webapp.core.problems import Invalid
from webapp.datasets import queries
from webapp.datasets.columns.filters import RANGES, Filters, parse, query, range_of, words, written
from webapp.datasets.exploration import narrowing
from webapp.datasets.models import Dataset, SavedView
from webapp.datasets.versions import services


def pair(key, strengths=(-2,), a="short", b="a much longer answer than that", **extra):
    preferences = [{"a": "a", "b": "b", "strength": each, "rater": f"p{i}"} for i, each in enumerate(strengths)]
    responses = [{"id": "a", "text": a}, {"id": "b", "text": b}]
    prompt = [{"role": "user", "content": extra.pop("prompt", f"Question {key}")}]
    return {"key": key, "prompt": prompt, "responses": responses, "preferences": preferences, **extra}


CRITERIA = [
    {
        "id": "c1",
        "text": "At most 9 words",
        "points": 2,
        "kind": "hard",
        "verifier": {"name": "word_count", "args": {"max": 9}},
    },
    {"id": "c2", "text": "Boasts", "points": -1},
    {"id": "c3", "text": "Is kind", "points": 1},
]
ROWS = [
    pair("a", (-3, -1), domain="maths", split="train", source="book"),
    pair(
        "b",
        (2, -2),
        domain="maths",
        split="heldout",
        prompt="Write exactly three words, at most nine letters, only once",
    ),
    pair("c", (3,), domain="law", split="train", rubric={"criteria": CRITERIA}, meta={"pass_rate": 0.25}),
    pair("d", (-1,), a="This might be so, perhaps.", b="**Definitely**\n- clearly\n- certainly\n- yes"),
    {"key": "e", "prompt": [{"role": "user", "content": "سؤال بلا إجابة"}], "rubric": {"criteria": CRITERIA[:1]}},
]


@pytest.fixture
def version(team):
    dataset = Dataset.objects.create(workspace=team.workspace, name="Mixed")
    return services.new_version(team.researcher, dataset, map(Example.model_validate, ROWS), None, {"from": "run"})


def keys(version, **given):
    return "".join(member.example.key for member in queries.examples(version, parse(given)).items)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "abcde"),
        ({"split": "train"}, "ac"),
        ({"split": "none"}, "de"),
        ({"domain": "maths"}, "ab"),
        ({"domain": "none such"}, ""),
        ({"source": "book"}, "a"),
        ({"rubric": "yes"}, "ce"),
        ({"preferences": "no"}, "e"),
        ({"verifier": "word_count"}, "ce"),
        ({"kind": "pitfall"}, "c"),
        ({"kind": "hard"}, "ce"),
        ({"label": "first"}, "ad"),
        ({"label": "tie"}, "b"),
        ({"label": "none"}, "e"),
        ({"slice": "rejected:longer"}, "ad"),
        ({"slice": "rejected:confident"}, "d"),
        ({"slice": "rejected:formatted"}, "d"),
        ({"slice": "chosen:longer"}, "c"),
        ({"hard": "any"}, "abd"),
        ({"strength": "-3..-0.5"}, "ad"),
        ({"agreement": "1.."}, "a"),
        ({"agreement": "0..0.5"}, "b"),
        ({"pass_rate": "0.2..0.3"}, "c"),
        ({"criteria": "3"}, "c"),
        ({"criteria": "1..3"}, "ce"),
        ({"ratio": "..1"}, "c"),
        ({"q": "question", "domain": "maths"}, "a"),
        ({"q": "بلا"}, "e"),
        ({"q": "!!"}, ""),
    ],
)
def test_each_filter_finds_what_it_says(version, given, expected):
    assert keys(version, **given) == expected
    assert narrowing.count(version, parse(given)) == len(expected)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"length": "x"}, "length"),
        ({"ratio": "5..2"}, "ratio"),
        ({"kind": "soft"}, "kind"),
        ({"strength": "..nan"}, "strength"),
        ({"rubric": "maybe"}, "rubric"),
        ({"agreement": ".."}, "agreement"),
    ],
)
def test_what_is_not_understood_is_named(given, field):
    with pytest.raises(Invalid) as problem:
        parse(given)
    assert list(problem.value.fields) == [field]


ends = st.one_of(st.none(), st.integers(-50, 5000).map(float))


@given(low=ends, high=ends, text=st.text("abc ", max_size=5), rubric=st.sampled_from([None, True, False]))
def test_filters_are_written_and_read_alike(low, high, text, rubric):
    length = (
        None
        if low is None and high is None
        else (min(low, high), max(low, high))
        if None not in (low, high)
        else (low, high)
    )
    filters = Filters(text=text, length=length, rubric=rubric)
    assert parse(query(filters)) == filters
    assert len(words(filters)) == len(query(filters))
    if length:
        assert range_of(written(length)) == length


def test_a_bar_counts_what_its_filter_finds(version):
    drawn = narrowing.histograms(version, Filters())
    assert {"length", "ratio", "strength", "criteria"} <= {each.name for each in drawn}
    for histogram in drawn:
        for bar in histogram.bars:
            assert narrowing.count(version, parse({histogram.name: bar.range})) == bar.count == bar.all
        known = sum(bar.all for bar in histogram.bars)
        assert known + histogram.missing == len(ROWS), histogram.name


def test_bars_keep_to_the_other_filters_and_not_to_their_own(version):
    narrowed = {
        each.name: each for each in narrowing.histograms(version, parse({"domain": "maths", "strength": "-2.5..-1.5"}))
    }
    assert sum(bar.count for bar in narrowed["strength"].bars) == 2
    assert sum(bar.count for bar in narrowed["length"].bars) == 1
    assert [bar.range for bar in narrowed["strength"].bars if bar.chosen] == ["-2.5..-1.5"]
    several = {each.name: each for each in narrowing.histograms(version, parse({"strength": "-2.5..-0.5"}))}
    assert [bar.range for bar in several["strength"].bars if bar.chosen] == ["-2.5..-1.5", "-1.5..-0.5"]
    onwards = {each.name: each for each in narrowing.histograms(version, parse({"strength": "1.5.."}))}
    assert [bar.range for bar in onwards["strength"].bars if bar.chosen] == ["1.5..2.5", "2.5.."]


lengths = st.lists(st.one_of(st.none(), st.integers(0, 400)), min_size=1, max_size=30)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lengths=lengths, low=st.integers(0, 300), width=st.integers(0, 200))
def test_a_range_finds_exactly_what_counting_by_hand_finds(team, lengths, low, width):
    dataset = Dataset.objects.create(workspace=team.workspace, name="Lengths")
    records = [
        Example.model_validate(
            {
                "key": f"k{i}",
                "prompt": [{"role": "user", "content": "?"}],
                "responses": [] if n is None else [{"id": "a", "text": "x" * n}],
            }
        )
        for i, n in enumerate(lengths)
    ]
    try:
        version = services.new_version(team.researcher, dataset, records, None, {"from": "run"})
        found = [
            member.example.key for member in queries.examples(version, parse({"length": f"{low}..{low + width}"})).items
        ]
        assert found == [f"k{i}" for i, n in enumerate(lengths) if n is not None and low <= n <= low + width]
    finally:
        dataset.delete()


def test_a_search_goes_on_behind_its_cursor_and_keeps_to_the_filters(team):
    dataset = Dataset.objects.create(workspace=team.workspace, name="Common")
    records = (Example.model_validate(pair(f"k{i:02}", domain="odd" if i % 2 else "even")) for i in range(40))
    version = services.new_version(team.researcher, dataset, records, None, {"from": "run"})
    page = queries.examples(version, parse({"q": "question", "domain": "odd"}), limit=5)
    assert [member.example.key for member in page.items] == ["k01", "k03", "k05", "k07", "k09"]
    page = queries.examples(version, parse({"q": "question", "domain": "odd"}), page.next, limit=50)
    assert (len(page.items), page.next) == (15, None)
    assert narrowing.count(version, parse({"q": "question"})) == 40


def test_the_api_counts_lists_and_draws(version, api):
    base = f"/datasets/{version.dataset_id}/versions/1"
    assert api.get(f"{base}/count", q="question").json() == {"count": 4 - 1}
    [row] = api.get(f"{base}/examples", domain="law").json()["items"]
    assert (row["strength"], row["length_ratio"] < 1, row["agreement"]) == (3, True, None)
    assert api.get(f"{base}/histograms").json()["items"][0]["bars"]
    answer = api.get(f"{base}/examples", length="long")
    assert (answer.status_code, answer.json()["error"]["fields"][0]["path"]) == (422, "length")


def test_views_are_kept_for_the_workspace(version, api, team):
    base = f"/datasets/{version.dataset_id}/views"
    made = api.post(base, {"name": "Long", "filters": {"slice": "rejected:longer"}})
    assert made.status_code == 201
    again = api.post(base, {"name": "Long", "filters": {"length": "9.."}})
    assert again.json()["id"] == made.json()["id"]
    assert ApiClient(team.reviewer).get(base).json()["items"] == [
        {"id": made.json()["id"], "name": "Long", "filters": {"length": "9.."}}
    ]
    assert api.post(base, {"name": "None", "filters": {}}).status_code == 422
    assert ApiClient(team.outsider).delete(f"/views/{made.json()['id']}").status_code == 404
    assert ApiClient(team.annotator).get(base).status_code == 403
    assert api.delete(f"/views/{made.json()['id']}").status_code == 204
    assert not SavedView.objects.exists()


def test_a_view_is_saved_opened_and_forgotten_on_the_page(version, as_researcher):
    page = f"/datasets/{version.dataset_id}/versions/1"
    saved = as_researcher.post(f"{page}/views?domain=maths", {"name": "Sums"})
    assert saved.url == f"{page}?domain=maths"
    assert b"Sums" in as_researcher.get(page).content
    gone = as_researcher.post(f"/views/{SavedView.objects.get().pk}/delete")
    assert gone.url == f"{page}?domain=maths"  # its filters are still there and can be saved again


def test_the_page_shows_filters_bars_and_a_way_out(version, as_researcher):
    page = as_researcher.get(f"/datasets/{version.dataset_id}", {"domain": "maths", "ratio": "1.5.."}).content.decode()
    assert "domain: maths" in page and "length ratio from 1.5" in page and "Derive a version" in page
    assert page.count('class="bar') > 10 and "Clear all" in page
    strange = as_researcher.get(f"/datasets/{version.dataset_id}", {"length": "tall"}, follow=True).content.decode()
    assert "length must be a range" in strange


@pytest.mark.parametrize("given", [{}, {"domain": "maths"}, {"q": "question"}, {"ratio": "1..", "q": "question"}])
def test_the_number_of_queries_does_not_grow_with_the_version(team, as_researcher, given):
    def cost(name, rows):
        dataset = Dataset.objects.create(workspace=team.workspace, name=name)
        records = (
            Example.model_validate(pair(f"k{i}", domain="maths", prompt=f"A question of length {i}"))
            for i in range(rows)
        )
        services.new_version(team.researcher, dataset, records, None, {"from": "run"})
        as_researcher.get(f"/datasets/{dataset.pk}", given)  # packed columns are in memory from now on
        with CaptureQueriesContext(connection) as captured:
            assert as_researcher.get(f"/datasets/{dataset.pk}", given).status_code == 200
        return len(captured)

    assert cost("few", 5) == cost("many", 45) <= 15


def test_an_example_tells_what_was_measured_and_where_it_stands(version, as_researcher):
    members = list(version.members.select_related("example").order_by("position"))
    page = as_researcher.get(f"/examples/{members[0].example_id}?in=1").content.decode()
    assert "Length ratio" in page and "100% of rater pairs" in page and "the worse answer is 1.5 times as long" in page
    assert f"/examples/{members[1].example_id}?in=1" in page and 'data-step="before"' not in page


def test_pages_and_api_keep_to_the_roles(version, team):
    base = f"/datasets/{version.dataset_id}/versions/1"
    example = version.members.first().example_id
    pages = [
        base,
        f"{base}/curate",
        f"{base}/export",
        f"{base}/diff",
        f"/datasets/{version.dataset_id}/versions",
        f"/examples/{example}",
    ]
    for path in pages:
        answers = [browser(each).get(path).status_code for each in (team.outsider, team.annotator, team.reviewer)]
        assert answers == [404, 403, 200], path
    for path in (f"{base}/count", f"{base}/histograms", f"{base}/diff?base=1", f"{base}/examples"):
        answers = [ApiClient(each).get(path).status_code for each in (team.outsider, team.annotator, team.reviewer)]
        assert answers == [404, 403, 200], path
    for method, path, body in (
        ("post", f"{base}/derive", {"filters": {"domain": "law"}}),
        ("post", f"{base}/curate", {"kind": "duplicates"}),
    ):
        answers = [
            getattr(ApiClient(each), method)(path, body).status_code
            for each in (team.outsider, team.annotator, team.reviewer, team.researcher)
        ]
        assert answers == [403 if answers[0] == 403 else 404, 403, 403, 202], path


def test_every_range_has_a_column():
    assert set(RANGES) <= set(Filters.__dataclass_fields__)
