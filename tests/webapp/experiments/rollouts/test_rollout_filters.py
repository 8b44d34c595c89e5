"""Rollouts are found by the parts of their reward: by value, by exclusion, by disagreement."""

import pytest

from webapp.core.problems import Invalid
from webapp.experiments.models import Rollout
from webapp.experiments.rollouts import queries
from webapp.experiments.rollouts.queries import RolloutQuery


def row(run, index, step=1, group=0, excluded="", **values):
    content = {"index": index, "excluded": excluded, "criteria": []}
    place = {"run": run, "step": step, "phase": "train", "group": group, "index": index}
    return Rollout(**place, content=content, excluded=bool(excluded), part_values=values)


@pytest.fixture
def judged(run):
    """A group of four. The verifier gives 0, 0, 1, 1; the judge gives 9, 2, 1, nothing."""
    Rollout.objects.bulk_create(
        [
            row(run, 0, verifier=0.0, judge=9.0),
            row(run, 1, verifier=0.0, judge=2.0),
            row(run, 2, verifier=1.0, judge=1.0),
            row(run, 3, verifier=1.0, judge=None, excluded="judge: it answered nothing"),
        ]
    )
    return run


def found_places(run, sort=None, **filters):
    return [each.index for each in queries.rollouts(run, RolloutQuery(step=1, **filters), sort=sort).items]


def test_parts_disagree_by_the_places_that_a_response_has_in_its_group(judged):
    """Ranks of the three with both parts: verifier 1/4, 1/4, 1; judge 1, 1/2, 0. Their distances are 3/4, 1/4 and 1."""
    between = ("verifier", "judge")
    page = queries.rollouts(judged, RolloutQuery(step=1, between=between), sort="-apart")
    assert [(each.index, each.apart) for each in page.items] == [(2, 1.0), (0, 0.75), (1, 0.25)]  # type: ignore[attr-defined]
    assert found_places(judged, between=between, apart=0.75) == [0, 2]
    assert found_places(judged, between=between[::-1], apart=0.75) == [0, 2]


def test_parts_of_one_scale_disagree_by_their_values(judged):
    assert found_places(judged, between=("verifier", "judge"), measure="value", apart=2.0) == [0, 1]


def test_a_response_alone_in_its_group_has_no_place_to_disagree_about(run):
    row(run, 0, a=1.0, b=0.0).save()
    assert found_places(run, between=("a", "b")) == []
    assert found_places(run, between=("a", "b"), measure="value", apart=1.0) == [0]


def test_another_group_and_phase_do_not_count_among_the_places(judged):
    row(judged, 0, group=1, verifier=5.0, judge=5.0).save()
    Rollout.objects.filter(group=0, index=2).update(phase="eval")
    assert found_places(judged, between=("verifier", "judge"), apart=0.25) == [0, 1]


def test_other_filters_leave_the_places_as_they_are(judged):
    """The whole group is ranked, even if only a part of it is shown."""
    assert found_places(judged, between=("verifier", "judge"), apart=1.0, part="judge", high=1.5) == [2]


def test_by_value_of_a_part(judged):
    assert found_places(judged, part="judge", low=2.0) == [0, 1]
    assert found_places(judged, part="judge", low=1.5, high=2.5) == [1]
    assert found_places(judged, part="judge", lacking=True) == [3]
    assert found_places(judged, part="judge", sort="-part") == [0, 1, 2, 3], "missing comes last"
    assert found_places(judged, part="judge", sort="part") == [2, 1, 0, 3]
    assert found_places(judged, part="verifier", high=0.0, by="judge", sort="part") == [1, 0], "sorted by another part"
    assert found_places(judged, part="another") == []
    assert found_places(judged, part="' OR 1=1 --") == []


def test_by_a_verdict_and_by_columns_at_once(judged):
    def held(met):
        return [{"text": "Names a colour", "verdict": {"criterion_id": "c1", "met": met}}]

    for index, met in enumerate((True, False, True, None)):
        Rollout.objects.filter(index=index).update(content={"criteria": held(met)})
    assert found_places(judged, verdict="met") == [0, 2]
    assert found_places(judged, part="judge", low=1.5, verdict="met") == [0], "a verdict and a part"
    assert found_places(judged, part="judge", low=1.5, criterion="c1", verdict="unmet") == [1]
    assert found_places(judged, excluded=True, criterion="Names a colour") == [3]
    assert found_places(judged, excluded=False, criterion="Names a colour", verdict="missing") == []
    assert found_places(judged, between=("verifier", "judge"), apart=0.75, verdict="met", part="judge", high=5.0) == [2]


def test_by_being_left_out(judged):
    assert found_places(judged, excluded=True) == [3]
    assert found_places(judged, excluded=False) == [0, 1, 2]


@pytest.mark.parametrize(("sort", "field"), [("-apart", "between"), ("part", "by")])
def test_an_order_by_what_is_not_named_is_refused(judged, sort, field):
    with pytest.raises(Invalid) as refused:
        queries.rollouts(judged, RolloutQuery(step=1), sort=sort)
    assert field in refused.value.fields


@pytest.mark.parametrize("sort", ["part", "-part", "-apart"])
def test_orders_by_parts_page_without_gap_or_repeat(run, sort):
    rows = [row(run, i, step=step, a=i % 3, b=-i if i != 2 else None) for step in (1, 2) for i in range(5)]
    Rollout.objects.bulk_create(rows)
    wanted = RolloutQuery(part="b", between=("a", "b") if sort == "-apart" else None)
    whole = [each.pk for each in queries.rollouts(run, wanted, sort=sort).items]
    pages, cursor = [], None
    while True:
        page = queries.rollouts(run, wanted, sort=sort, cursor=cursor, limit=3)
        pages += [each.pk for each in page.items]
        if (cursor := page.next) is None:
            break
    assert pages == whole
    assert len(set(pages)) == (8 if sort == "-apart" else 10)


@pytest.mark.parametrize("sort", ["newest", "place", "reward", "-reward", "-advantage", "-spread", "-part"])
def test_a_list_leads_back_over_the_same_rows(run, sort):
    rows = [row(run, i, step=step, group=group, b=i) for step in (1, 2) for group in (0, 1) for i in range(3)]
    for i, each in enumerate(rows):
        each.reward, each.advantage = [None, 0.2, 0.5, 0.1][i % 4], [0.3, None, -0.1][i % 3]
    Rollout.objects.bulk_create(rows)
    wanted = RolloutQuery(part="b")
    whole = [each.pk for each in queries.rollouts(run, wanted, sort=sort).items]
    page = queries.rollouts(run, wanted, sort=sort, limit=5)
    pages = [page]
    while page.next:
        page = queries.rollouts(run, wanted, sort=sort, cursor=page.next, limit=5)
        pages.append(page)
    assert [each.pk for page in pages for each in page.items] == whole
    assert pages[0].previous is None
    back = list(page.items)
    while page.previous:
        page = queries.rollouts(run, wanted, sort=sort, cursor=page.previous, limit=5)
        assert page.next
        back = page.items + back
    assert [each.pk for each in back] == whole
    assert page.items[0].pk == whole[0]


def test_by_advantage_and_by_the_spread_of_the_whole_group(run):
    rows = [row(run, index, group=group) for group in (0, 1, 2) for index in (0, 1)]
    for each, reward, advantage in zip(
        rows, [0.4, 0.5, 0.1, 0.9, None, None], [0.1, 0.3, -0.2, 0.2, None, None], strict=True
    ):
        each.reward, each.advantage = reward, advantage
    Rollout.objects.bulk_create(rows)

    def places(sort):
        return [(each.group, each.index) for each in queries.rollouts(run, RolloutQuery(step=1), sort=sort).items]

    assert places("-advantage")[:4] == [(0, 1), (1, 1), (0, 0), (1, 0)]
    assert places("-spread") == [(1, 0), (1, 1), (0, 0), (0, 1), (2, 0), (2, 1)]


def test_the_newest_first_begin_at_a_step(run):
    Rollout.objects.bulk_create([row(run, i, step=step) for step in (1, 2, 4) for i in range(2)])
    page = queries.rollouts(run, from_step=3, limit=3)
    assert [each.step for each in page.items] == [2, 2, 1]
    before = queries.rollouts(run, cursor=page.previous)
    assert [each.step for each in before.items] == [4, 4]
    assert before.previous is None
    assert queries.rollouts(run, from_step=4).previous is None
    with pytest.raises(Invalid):
        queries.rollouts(run, from_step=3, sort="reward")
    with pytest.raises(Invalid, match="cursor"):
        queries.rollouts(run, cursor="W1tb" * 1_000)  # lists in lists, too deep to be read


def test_a_search_without_a_step_is_bounded_and_says_how_far_it_went(run, monkeypatch):
    Rollout.objects.bulk_create([row(run, i, step=step, a=1.0) for step in (1, 2, 3) for i in range(2)])
    monkeypatch.setattr(queries, "MAX_SEARCHED", 4)
    page = queries.rollouts(run, RolloutQuery(part="a"))
    assert {each.step for each in page.items} == {2, 3}
    assert page.oldest_step == 2
    assert queries.rollouts(run, RolloutQuery(part="a", step=1)).oldest_step is None
    assert len(queries.rollouts(run).items) == 6, "an index finds these"
    monkeypatch.setattr(queries, "MAX_SEARCHED", 1)
    assert queries.rollouts(run, RolloutQuery(part="a")).oldest_step == 3, "a step is searched whole"


def test_the_number_of_queries_does_not_grow(judged, django_assert_num_queries):
    wanted = RolloutQuery(between=("verifier", "judge"), part="judge", excluded=False)
    with django_assert_num_queries(2):
        queries.rollouts(judged, wanted, sort="-apart")
    Rollout.objects.bulk_create([row(judged, i, group=2, verifier=1.0, judge=i) for i in range(8)])
    with django_assert_num_queries(2):
        queries.rollouts(judged, wanted, sort="-apart")


def test_facets_tell_the_parts_with_their_weights_and_why_responses_were_left_out(launch):
    rewards = [
        {"kind": "verifier", "name": "verifier", "weight": 0.5},
        {"kind": "format", "name": "form", "shadow": True},
    ]
    run = launch(config={"steps": 4, "rewards": rewards})
    Rollout.objects.bulk_create(
        [row(run, 0, verifier=0.0, form=1.0), row(run, 1, verifier=None, form=0.0, excluded="verifier: too slow")]
    )
    told = queries.facets(run)
    assert [(part["name"], part["weight"], part["shadow"], part["missing"]) for part in told["parts"]] == [
        ("verifier", 0.5, False, 1),
        ("form", 1.0, True, 0),
    ]
    assert (told["parts"][1]["low"], told["parts"][1]["high"]) == (0.0, 1.0)
    assert told["excluded"] == [{"reason": "verifier: too slow", "count": 1}]


def test_what_a_run_sends_is_found_by_its_parts_and_a_resend_replaces_them(trainer, api):
    def part(value, why=""):
        return {"name": "judge", "kind": "judge", "value": value, "why": why}

    sent = trainer.event("rollouts", 1, rollouts=[trainer.rollout(parts=[part(None, "away")], excluded="judge: away")])
    assert trainer.post(sent).status_code == 200
    again = trainer.event("rollouts", 1, rollouts=[trainer.rollout(parts=[part(0.5)], components={"judge": 0.5})])
    base = f"/runs/{trainer.run_id}/rollouts"
    assert len(api.get(f"{base}?excluded=true&part=judge&lacking=true").json()["items"]) == 1
    trainer.post(again)
    assert api.get(f"{base}?excluded=true").json()["items"] == []
    assert api.get(f"{base}?part=judge&low=0.5&high=0.5&sort=part").json()["items"][0]["parts"][0]["value"] == 0.5
    for bad in ("between=judge", "between=a,b,c", "low=nan", "apart=-1", "sort=-apart", "sort=part", "measure=size"):
        assert api.get(f"{base}?{bad}").status_code == 422, bad


def test_a_following_page_begins_where_the_last_one_ended_and_reads_nothing_before_it(run):
    """An index can use the bound on the first column."""
    condition = queries._after(queries.ORDERS["newest"], [4, "train", 0, 1])
    assert ("step__lte", 4) in condition.children
    Rollout.objects.bulk_create([row(run, i, step=step) for step in range(1, 6) for i in range(3)])
    found = [(each.step, each.index) for each in Rollout.objects.filter(condition).order_by("-step", "-index")]
    assert found == [(4, 0)] + [(step, i) for step in (3, 2, 1) for i in (2, 1, 0)]


@pytest.mark.parametrize("most", [2000, 3])
def test_steps_are_found_without_counting_and_with_it(run, launch, monkeypatch, most):
    monkeypatch.setattr(queries, "MAX_STEPS", most)
    Rollout.objects.bulk_create([row(run, i, step=step) for step in (2, 5, 9) for i in range(step)])
    Rollout.objects.filter(step=5, index=0).update(phase="eval")
    row(launch(), 0, step=7).save()
    counted = queries.facets(run)["steps"]
    assert [(each["step"], each["phase"], each["count"]) for each in counted] == [
        (2, "train", 2),
        (5, "eval", 1),
        (5, "train", 4),
        (9, "train", 9),
    ][-most:]
    assert queries.facets(run, counted=False)["steps"] == [each | {"count": None} for each in counted]


def test_a_run_without_rollouts_has_no_steps(run):
    assert queries.facets(run, counted=False)["steps"] == []
