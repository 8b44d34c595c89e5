"""Tables and rollouts in a report, its history, and its file."""

import re
from html import unescape

import pytest

from tests.pages import page_html
from tests.team import ApiClient, browser
from webapp.experiments.models import MetricPoint, Rollout, Run
from webapp.reports import export, services, svg

from .conftest import CHART

pytestmark = pytest.mark.django_db


def page_of(membership, body: str) -> str:
    made = services.create(membership, "Blocks", body)
    return unescape(page_html(browser(membership).get(f"/reports/{made.pk}")))


def cells(html: str) -> list[str]:
    found = re.findall(r"<td[^>]*>(.*?)</td>", html, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]+>", " ", each).split()) for each in found]


def test_seeds_are_one_row_with_mean_and_interval_or_stand_apart(team, seeds):
    ids = ", ".join(str(run.pk) for run in seeds)
    block = f"```runs\nruns: {ids}\ncolumns: state, reward/mean, no/such\n{{}}\n```"
    together = page_of(team.researcher, block.format(""))
    told = cells(together)
    assert len(told) == 3 and "× 2" in told[0] and "seeds 0, 1" in told[0]
    assert told[1] == "2 queued" and told[2].startswith("0.8") and "2 seeds" in told[2]
    assert "Column no/such: No run here has no/such." in together
    apart = cells(page_of(team.researcher, block.format("seeds: apart\nsort: -reward/mean")))
    assert [apart[2], apart[5]] == ["1.300", "0.300"]


def test_folded_seeds_are_not_named_after_one_of_them(team, seeds):
    for run, name in zip(seeds, ("rates, trial 2, seed 0", "rates, trial 2, seed 1"), strict=True):
        Run.objects.filter(pk=run.pk).update(name=name)
    ids = ", ".join(str(run.pk) for run in seeds)
    told = cells(page_of(team.researcher, f"```runs\nruns: {ids}\n```"))
    assert told[0].startswith("rates, trial 2 × 2 ") and "seeds 0, 1" in told[0]
    alone = cells(page_of(team.researcher, f"```runs\nruns: {seeds[1].pk}\n```"))
    assert alone[0].startswith("rates, trial 2, seed 1 ")


def test_a_table_says_what_it_leaves_out_and_what_it_cannot_do(team, seeds):
    html = page_of(team.researcher, "```runs\nquery:  state:queued\nseeds: apart\nmost: 1\n```")
    assert len(cells(html)) == 5 and "Only the first 1 rows are shown." in html
    assert "Line 3: Notes has no order" in page_of(team.researcher, "```runs\nquery: state:queued\nsort: notes\n```")


def test_what_is_missing_stands_where_the_numbers_of_its_column_stand(team, seeds):
    seen = page_of(team.reviewer, f"```runs\nruns: {seeds[0].pk}\ncolumns: took, group\n```")
    assert re.findall(r'<td class="([^"]*)">\s*–', seen) == ["num missing", " missing"]


def test_a_rollout_shows_its_words_verdicts_and_parts(team, seeds):
    made = services.create(
        team.researcher, "One", f"```rollout\nrun: {seeds[0].pk}\nstep: 2\nprompt: 4\nresponse: 2\n```"
    )
    html = page_html(browser(team.reviewer).get(f"/reports/{made.pk}"))
    assert "Name a colour &lt;b&gt;" in html and "Red, as ever." in html and "reward 0.750" in html
    words = " ".join(re.sub(r"<[^>]+>", " ", unescape(html)).split())
    assert "Names a colour +3 met It says red." in words and "Apologises −4 no verdict" in words
    assert "rubric 0.750" in words and "length measured only no value" in words


def test_a_rollout_that_is_not_there_is_said_in_its_block(team, seeds):
    Rollout.objects.all().delete()
    html = page_of(team.researcher, f"```rollout\nrun: {seeds[0].pk}\nstep: 2\nprompt: 4\n```\nwords after")
    assert "has no response 1 to prompt 4 at step 2 (train)" in html and "words after" in html
    assert "Run 999999 is not here" in page_of(team.researcher, "```rollout\nrun: 999999\nstep: 2\nprompt: 4\n```")


def test_the_file_has_charts_tables_and_rollouts_and_asks_nobody_for_anything(team, seeds):
    ids = ", ".join(str(run.pk) for run in seeds)
    body = f"""## Seen\n{CHART.format(run=ids)}\n```runs\nruns: {ids}\n```
```rollout\nrun: {seeds[0].pk}\nstep: 2\nprompt: 4\nresponse: 2\n```\n{CHART.format(run=999999)}"""
    made = services.create(team.researcher, "Für alle", body)
    answer = browser(team.reviewer).get(f"/reports/{made.pk}/file")
    html = page_html(answer)
    assert answer["Content-Disposition"] == f'attachment; filename="report-{made.pk}-fr-alle.html"'
    assert "<script" not in html and not re.search(r"(src|href)=", html) and "default-src 'none'" in unescape(html)
    assert html.count("<polyline") == 1 and html.count("<polygon") == 1 and "Red, as ever." in html and "× 2" in html
    assert "Run 999999 is not here" in html
    verdicts = html[html.index('<ul class="report-verdicts">') :]
    verdicts = verdicts[: verdicts.index("</ul>")]
    assert [drawing.count("<path") for drawing in re.findall(r"<svg.*?</svg>", verdicts)] == [1, 2], "met; no verdict"
    assert verdicts.count('class="icon" viewBox="0 0 24 24" aria-hidden="true"') == 2 and "<use" not in verdicts
    assert page_html(ApiClient(team.reviewer).get(f"/reports/{made.pk}/file")).count("<polyline") == 1


def test_a_file_says_which_charts_it_leaves_out(team, seeds, monkeypatch):
    monkeypatch.setattr(export, "MOST_CHARTS", 1)
    made = services.create(team.researcher, "Two", CHART.format(run=seeds[0].pk) + "\n" + CHART.format(run=seeds[1].pk))
    html = page_html(browser(team.reviewer).get(f"/reports/{made.pk}/file"))
    assert html.count("<polyline") == 1 and "A file holds at most 1 charts." in html


def test_the_lines_of_the_file_are_means_over_seeds_with_their_interval(team, seeds, launch):
    again = launch(config={"steps": 60, "seed": 0})  # with the values of the first run
    points = MetricPoint.objects.filter(run=seeds[0])
    MetricPoint.objects.bulk_create(
        [MetricPoint(run=again, step=each.step, key=each.key, value=each.value, time=each.time) for each in points]
    )
    runs = ", ".join(str(run.pk) for run in (*seeds, again))
    named = "band: 95% interval of the mean over seeds (Student's t)"
    made = services.create(team.researcher, "Twice", CHART.format(run=runs))
    html = unescape(page_html(browser(team.reviewer).get(f"/reports/{made.pk}/file")))
    assert html.count("<polyline") == 1 and html.count(named) == 1
    assert "last 0.8" in html  # 0.3 and 1.3, and not 0.3 twice
    block = CHART.format(run=runs).replace("metric:", "band: range\nmetric:")
    ranged = services.create(team.researcher, "Range", block)
    html = unescape(page_html(browser(team.reviewer).get(f"/reports/{ranged.pk}/file")))
    assert html.count("band: lowest to highest seed") == 1 and named not in html
    alone = services.create(team.researcher, "One seed", CHART.format(run=f"{seeds[0].pk}, {again.pk}"))
    html = unescape(page_html(browser(team.reviewer).get(f"/reports/{alone.pk}/file")))
    assert "last 0.3" in html and "<polygon" not in html and named not in html


def test_a_drawn_line_is_the_mean_over_seeds_and_its_band_their_interval():
    line = svg.line("a", [1, 2, 3], [[1.0, None, 3.0], [3.0, None, None]], [0, 1])
    assert line.points == ((1, 2.0), (3, 3.0)) and line.limits == ((1, 1.0, 3.0), (3, 3.0, 3.0))
    ((x, low, high),) = line.band  # s / sqrt(2) = 1, t(1) at 97.5% = 12.7062
    assert (x, low, high) == (1, pytest.approx(2 - 12.7062, abs=1e-4), pytest.approx(2 + 12.7062, abs=1e-4))
    ranged = svg.line("a", [1, 2, 3], [[1.0, None, 3.0], [3.0, None, None]], [0, 1], around="range")
    assert ranged.band == ranged.limits == line.limits and ranged.points == line.points
    twice = svg.line("a", [1], [[0.0], [0.0], [3.0]], [0, 0, 1])
    assert twice.points == ((1, 1.5),) and twice.limits == ((1, 0.0, 3.0),)
    assert svg.line("a", [1], [[0.0], [0.0], [3.0]], [None] * 3).points == ((1, 1.0),)  # seeds that are not known
    assert svg.line("a", [1], [[1.0], [3.0]], [0, 0]).band == ()
    for last, told in (
        (12, ["5", "10"]),
        (11, ["2", "4", "6", "8", "10"]),
        (3, ["1", "2", "3"]),
        (40, ["10", "20", "30", "40"]),
    ):
        drawn = svg.chart("t", [svg.line("a", range(1, last + 1), [[1.0] * last], [0])])
        assert re.findall(r'text-anchor="middle">([^<]*)<', drawn) == told, "a run has no step 2.5"
    assert svg.smooth([1.0, 3.0], 0.5) == [1.0, pytest.approx(7 / 3)]
    assert svg.chart("t", [svg.line("a", [1], [[-1.0]], [0])], log=True) == ""
    for values in ([0.0], [5.0, 5.0], [1e-9, 2e-9], [1e12, -1e12]):
        assert "nan" not in svg.chart("t", [svg.line("a", [1, 2][: len(values)], [values], [0])])


@pytest.mark.parametrize("log", [False, True])
def test_the_axis_of_a_drawn_chart_follows_the_seeds_and_not_their_interval(log):
    picture = svg.chart("t", [svg.line("a", [1, 2], [[1.0, 1.0], [100.0, 10.0]], [0, 1])], log=log)
    numbers = re.findall(r'text-anchor="end">(-?[\d.]+)</text>', picture)
    assert (numbers[0], numbers[-1]) == (("1", "100") if log else ("0", "100"))
    assert "<polygon" in picture and '<svg x="56"' in picture  # the band leaves the picture


@pytest.mark.parametrize(
    ("ends", "log", "first", "last"),
    [
        ((0.0, 1.0), False, "0", "1"),
        ((0.0, None), False, "0", "8"),
        ((None, 4.0), False, "2", "4"),
        ((20.0, None), False, "20", "40"),
        ((-1.0, 100.0), True, "10", "100"),
    ],
)
def test_the_ends_of_a_chart_are_those_that_are_given(ends, log, first, last):
    picture = svg.chart("t", [svg.line("a", [1, 2, 3], [[2.0, 4.0, 8.0]], [0])], log=log, ends=ends)
    numbers = re.findall(r'text-anchor="end">([\d.]+)</text>', picture)
    assert (numbers[0], numbers[-1]) == (first, last)
    assert '<svg x="56"' in picture  # nothing is drawn outside


def test_seconds_since_the_start_are_laid_on_one_grid():
    xs, held = svg.by_time({1: ([1.0, 2.0], [0.0, 100.0]), 2: ([5.0], [50.0])})
    assert (xs[0], xs[-1]) == (0, 100.0)
    assert (held[1][0], held[1][-1], held[2][100]) == (1.0, 2.0, 5.0)


def test_the_history_shows_what_each_version_changed_and_restores_one(team, report):
    services.write(team.owner, report, 1, "What we saw", "## Words\nSeen twice.")
    page = browser(team.researcher)
    html = unescape(page_html(page.get(f"/reports/{report.pk}/versions")))
    assert "Look at version 1" in html and 'data-kind="added"' in html and "Restore version 1" in html
    old = page_html(page.get(f"/reports/{report.pk}/versions/1"))
    assert "You read version 1 of 2" in old and "Seen." in old
    assert page.post(f"/reports/{report.pk}/versions/1/restore").status_code == 302
    html = page_html(page.get(f"/reports/{report.pk}/versions"))
    assert "restored from version 1" in html and "Look at version 3" in html
    assert "Restore version 1" not in page_html(browser(team.reviewer).get(f"/reports/{report.pk}/versions"))


def test_versions_over_the_api(team, report):
    services.write(team.owner, report, 1, "Other", "two")
    api, path = ApiClient(team.researcher), f"/reports/{report.pk}/versions"
    assert [each["number"] for each in api.get(path).json()["items"]] == [2, 1]
    first = api.get(path, limit=1).json()
    assert [each["number"] for each in api.get(path, cursor=first["next"]).json()["items"]] == [1]
    assert api.get(f"{path}/1").json()["body"] == "## Words\nSeen." and api.get(f"{path}/3").status_code == 404
    assert api.post(f"{path}/1/restore").json()["version"] == 3
    assert api.get(f"{path}/3").json()["restored_from"] == 1
