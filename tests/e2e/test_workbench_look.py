"""More of the workbench: other kinds, suggestions of models, axe, a phone."""

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.e2e.look import picture
from tests.e2e.test_accessibility import AXE, LOOK, violations
from tests.e2e.workbench import Bench, make_project, until, wait_until_sent
from webapp.annotation.models import Answer, Assignment, Guidelines

pytestmark = pytest.mark.browser
FOUR = [{"id": name, "text": "Grace Hopper finished the first compiler in 1952."} for name in "abcd"]
RATIONALE = "B is wrong about the year. A is short and right."


def with_rationale(number: int) -> dict:
    """The first example has a text to cut into reasons, the next one has none."""
    responses = [{"id": "good", "text": "In 1952."}, {"id": "bad", "text": "In 1987."}]
    return {"responses": responses, "meta": {"rationale": RATIONALE} if number == 0 else {}}


MARKED = "The **year** is 1952, says [a book](http://the.example/year).\n\n1. Not the year 1987\n2. So $t = 1952$ holds, 年份是对的"


def test_code_is_set_as_code_without_fences_too(open_page, as_annotator, team):
    texts = {"good": "Use recursion:\n\n    def rev(n):\n        return n", "bad": "Use a loop."}
    record = lambda number: {"responses": [{"id": name, "text": text} for name, text in texts.items()]}  # noqa: E731
    bench = Bench(open_page(as_annotator), make_project(team.owner, team.annotator, record=record, tasks=1))
    expect(bench.page.locator(".work-card pre code")).to_have_text("def rev(n):\n    return n\n")


def test_long_lines_of_code_are_whole_beside_open_guidelines(open_page, as_annotator, team):
    line = "result = transform(" + ", ".join(f"argument_{n}=value_{n}" for n in range(20)) + ")  # the end"
    texts = {"good": f"So:\n\n```python\nif ready:\n\t{line}\n```", "bad": f"Or:\n\n    {'x' * 300}"}
    record = lambda number: {"responses": [{"id": name, "text": text} for name, text in texts.items()]}  # noqa: E731
    page = open_page(as_annotator)
    page.set_viewport_size({"width": 1280, "height": 800})
    Bench(page, make_project(team.owner, team.annotator, record=record, tasks=1))
    expect(page.locator("#work-guidelines")).to_be_visible()
    expect(page.locator(".work-card pre")).to_have_count(2)
    hidden = page.locator(".work-card pre, .work-card-body").evaluate_all(
        "all => all.filter((each) => each.scrollWidth > each.clientWidth).length"
    )
    assert hidden == 0
    picture(page, "workbench-code")


def test_passages_of_a_formatted_text_are_places_in_it_as_it_was_written(open_page, as_annotator, team):
    """Chooses words by pointer and by keyboard. Stars, numbers and addresses are not shown, and a formula is one word."""
    texts = {"good": MARKED, "bad": "In **1987**."}
    record = lambda number: {"responses": [{"id": name, "text": text} for name, text in texts.items()]}  # noqa: E731
    project = make_project(team.owner, team.annotator, record=record, tasks=1)
    bench = Bench(open_page(as_annotator), project)
    letter = Assignment.objects.get().order.index(0)  # the place of the marked text
    body = bench.page.locator(".work-card .work-text").nth(letter)
    expect(body.locator("strong")).to_have_text("year")
    expect(body.locator(".math .katex")).to_have_count(1)
    side = "ab"[letter]

    def selected(words: str) -> None:
        body.locator("li").first.evaluate(
            """(item, words) => {
                const [text, range] = [item.firstChild, document.createRange()];
                const at = text.data.indexOf(words);
                range.setStart(text, at);
                range.setEnd(text, at + words.length);
                getSelection().removeAllRanges();
                getSelection().addRange(range);
            }""",
            words,
        )

    bench.press("r")
    bench.type("Wrong year")
    bench.press("Escape")
    selected("the year 1987")
    bench.press(side, "r")
    bench.type("The equation")
    bench.press("Escape", side, *["ArrowRight"] * 12, "Shift+ArrowRight", "Enter", "2", "Control+Enter")
    wait_until_sent(bench.page)
    until(lambda: Answer.objects.exists())
    first, second = Answer.objects.get().content["reasons"]
    assert MARKED[first["start"] : first["end"]] == "the year 1987"
    assert MARKED[second["start"] : second["end"]] == "t = 1952$ holds"


def test_a_rationale_is_cut_into_reasons_by_keyboard_alone(open_page, as_annotator, team):
    subject = {"a": "good", "b": "bad", "preference": 0}
    project = make_project(team.owner, team.annotator, kind="rationale", record=with_rationale, subject=subject)
    bench = Bench(open_page(as_annotator), project)
    bench.press("t", "ArrowUp", "Enter", "Escape")  # the sentence around the first word
    expect(bench.reason(1)).to_have_value("B is wrong about the year.")
    bench.press("t", "ArrowDown", "ArrowDown", "t", "Escape")
    expect(bench.reason(2)).to_have_value("A is short and right.")
    bench.press("Control+Enter")

    bench.on_task(1)  # no text is given: the person writes one
    bench.press("Control+Enter")
    expect(bench.page.locator("#work-problems")).to_contain_text("Nothing is answered yet")
    own = bench.page.get_by_role("textbox", name="Your rationale")
    own.focus()
    bench.type("A names the year and B does not.")
    bench.press("Control+Enter")
    expect(bench.page.locator("#work-problems")).to_contain_text("at least one reason")
    bench.press("Escape", "r")
    bench.type("A names the year")
    bench.press("Control+Enter")
    bench.on_task(2)
    bench.delivered()
    given, written = Answer.objects.order_by("id").values_list("content", flat=True)
    assert given["source"] == RATIONALE and len(given["reasons"]) == 2
    assert written["source"] == "A names the year and B does not."


def judged(number: int) -> dict:
    responses = [{"id": "good", "text": "In 1952."}, {"id": "bad", "text": "In 1987."}]
    return {"responses": responses, "preferences": [{"a": "good", "b": "bad", "strength": -3, "rater": "judge"}]}


@pytest.mark.parametrize("when", ["before", "after", "never"])
def test_a_models_view_is_shown_when_the_project_says_so(when, open_page, as_annotator, team):
    project = make_project(team.owner, team.annotator, record=judged, suggestions=when)
    bench = Bench(open_page(as_annotator), project)
    before = bench.page.locator("[data-subject=suggestion]")
    expect(before).to_have_count(1 if when == "before" else 0)
    bench.press("4", "Control+Enter")
    bench.on_task(1)
    bench.delivered()
    after = bench.page.locator("[data-subject=after]")
    expect(after).to_have_count(1 if when == "after" else 0)
    answer = Answer.objects.get()
    assert (answer.suggestion, answer.suggested_by) == (when, "" if when == "never" else "the dataset")
    if when == "before":
        expect(before).to_contain_text("much better")
    elif when == "after":
        expect(after).to_contain_text(re.compile("You: .*same.* A model: .*much better", re.IGNORECASE))
        after.get_by_role("button", name="Open it again").click()
        bench.on_task(0)


def test_a_models_view_of_the_last_task_is_seen_before_one_leaves(open_page, as_annotator, team):
    project = make_project(team.owner, team.annotator, record=judged, tasks=1, suggestions="after")
    bench = Bench(open_page(as_annotator), project)
    bench.press("4", "Control+Enter")
    expect(bench.page.get_by_role("heading", name="Nothing waits for you")).to_be_visible()
    expect(bench.page.locator("[data-subject=after]")).to_contain_text("A model: ")


def test_a_models_view_outlasts_the_next_task_and_not_the_one_after_it(open_page, as_annotator, team):
    # the page waits for the answer's feedback, so the next task comes later
    settings: dict[str, Any] = {"suggestions": "after", "gold_feedback": True}
    project = make_project(team.owner, team.annotator, record=judged, tasks=3, **settings)
    bench = Bench(open_page(as_annotator), project)
    bench.press("4", "Control+Enter")
    bench.on_task(1)
    after = bench.page.locator("[data-subject=after]")
    expect(after).to_contain_text("A model: ")
    bench.press("Backspace", "ArrowDown", "Enter")
    bench.on_task(2)
    expect(after).to_have_count(0)


def test_new_guidelines_are_announced_and_named_in_the_answer(open_page, as_annotator, team):
    project = make_project(team.owner, team.annotator)
    bench = Bench(open_page(as_annotator), project)
    Guidelines.objects.create(project=project, number=2, text="Prefer **kind** answers.")
    bench.on_task(0)
    bench.press("2", "Control+Enter")
    bench.on_task(1)  # it was loaded before the change; the task behind it says that there are new ones
    expect(bench.page.locator("[data-subject=guidelines]")).to_contain_text("now version 2")
    bench.press("g")
    expect(bench.page.locator("#work-guidelines")).to_contain_text("Prefer kind answers.")
    bench.press("2", "Control+Enter")
    bench.delivered()
    assert Answer.objects.order_by("-id").first().guidelines.number == 2


@pytest.mark.parametrize("then", ["stays", "submits"])
def test_new_guidelines_are_told_on_the_last_task_too(then, open_page, as_annotator, team):
    """No task comes behind it that would have them. A page that stays open asks every few minutes, and when a person comes back to it."""
    project = make_project(team.owner, team.annotator, tasks=1)
    bench = Bench(open_page(as_annotator), project)
    Guidelines.objects.create(project=project, number=2, text="Prefer **kind** answers.")
    bench.press("2")
    if then == "stays":
        bench.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    else:
        bench.press("Control+Enter")
        expect(bench.page.get_by_role("heading", name="Nothing waits for you")).to_be_visible()
    told = bench.page.locator("[data-subject=guidelines]")
    expect(told).to_contain_text("now version 2")
    told.get_by_role("button", name="Read them").click()
    expect(bench.page.locator("#work-guidelines")).to_contain_text("Prefer kind answers.")


def test_an_answer_that_was_begun_before_new_guidelines_names_the_earlier_ones(open_page, as_annotator, team):
    """The change is heard in the middle of the answer: nobody has read the new guidelines for it. The next answer names them."""
    project = make_project(team.owner, team.annotator)
    bench, sent = Bench(open_page(as_annotator), project), []
    bench.page.route("**/submit", lambda route: sent.append(route), times=1)  # held until the next answer is begun
    bench.press("2", "Control+Enter")
    bench.on_task(1)
    bench.press("2")
    expect(bench.page.locator(".work-scale :checked")).to_have_count(1)
    until(lambda: bool(sent) or bench.page.wait_for_timeout(20))
    Guidelines.objects.create(project=project, number=2, text="Prefer **kind** answers.")
    sent[0].continue_()
    expect(bench.page.locator("[data-subject=guidelines]")).to_contain_text("now version 2")
    bench.press("Control+Enter")
    bench.on_task(2)
    told = bench.page.locator("[data-subject=guidelines]")
    expect(told).to_contain_text("now version 2")  # it may have come just before the person went on
    told.get_by_role("button", name="Read them").click()
    expect(told).to_have_count(0)
    bench.press("2", "Control+Enter")
    bench.delivered()
    until(lambda: Answer.objects.count() == 3)
    assert [each.guidelines.number for each in Answer.objects.order_by("id")][1:] == [1, 2]


@pytest.mark.parametrize(
    ("left", "numbers"),
    [
        ("a draft in this browser", [1, 2]),
        ("a draft of another browser", [1, 2]),
        ("a copy that the server lacks", [1, 2]),
        ("a draft begun after the change", [2, 2]),
    ],
)
def test_an_answer_names_the_guidelines_under_which_it_was_begun_after_a_reload_too(
    open_page, as_annotator, team, left, numbers
):
    project = make_project(team.owner, team.annotator)
    bench = Bench(open_page(as_annotator), project)
    publish = lambda: Guidelines.objects.create(project=project, number=2, text="Prefer **kind** answers.")  # noqa: E731
    if left == "a draft begun after the change":  # of a task that was given before it
        publish()
        bench.page.reload()
        bench.on_task(0)
    if left == "a copy that the server lacks":
        # until the page is loaded again
        bench.page.evaluate("() => { window.fetch = () => Promise.reject(new TypeError('away')); }")
        bench.press("2")
        bench.says("kept in this browser")
    else:
        bench.press("2")
        bench.saved()
    if left == "a draft of another browser":
        bench.page.evaluate("localStorage.clear()")
    if left != "a draft begun after the change":
        publish()
    assert Assignment.objects.exclude(draft=None).exists() == (left != "a copy that the server lacks")
    bench.page.reload()
    bench.on_task(0)
    expect(bench.page.locator(".work-scale :checked")).to_have_count(1)
    bench.press("Control+Enter")
    bench.on_task(1)
    bench.press("2", "Control+Enter")
    bench.delivered()
    until(lambda: Answer.objects.count() == 2)
    assert [each.guidelines.number for each in Answer.objects.order_by("id")] == numbers
    assert bench.page.evaluate("Object.keys(localStorage).filter((name) => name.includes('begun:'))") == []


def test_texts_and_choices_have_room_beside_open_guidelines(open_page, as_annotator, team):
    """In a window of 1280 px: no choice of a scale has two lines, no title is cut into letters, and no text has lines of two words."""
    pairs = make_project(team.owner, team.annotator, name="Pairs", tasks=1, dimensions=["Correctness", "Style"])
    four: dict[str, Any] = {"subject": {"responses": ["a", "b", "c", "d"]}, "record": lambda _: {"responses": FOUR}}
    best = make_project(team.owner, team.annotator, name="Best", tasks=1, kind="best_worst", **four)
    subject = {"a": "good", "b": "bad", "preference": 0}
    given: dict[str, Any] = {"kind": "rationale", "record": with_rationale, "subject": subject}
    texts = make_project(team.owner, team.annotator, name="Texts", tasks=1, **given)
    page = open_page(as_annotator)
    page.set_viewport_size({"width": 1280, "height": 800})
    bench = Bench(page, pairs)
    bench.on_task(0)
    expect(page.locator("#work-guidelines")).to_be_visible()
    choices = page.locator(".work-step > span").evaluate_all(
        "all => all.map((each) => [each.textContent, each.offsetHeight])"
    )
    assert len(choices) == 21 and not [words for words, height in choices if height > 18]
    Bench(page, best).on_task(0)
    assert page.locator(".work-card").first.bounding_box()["width"] > 220
    Bench(page, texts).on_task(0)
    assert page.locator(".work-letter", has_text="Rationale").bounding_box()["height"] < 30


def test_the_steps_of_dimensions_have_room_in_an_answer_beside_the_responses(open_page, as_annotator, team):
    """In a window of 1280 px with open guidelines, seven steps had 56 px, and the other buttons lay over them."""
    project = make_project(team.owner, team.annotator, tasks=1, dimensions=["Correctness", "Style"])
    page = open_page(as_annotator)
    page.set_viewport_size({"width": 1280, "height": 800})
    Bench(page, project).press("d")
    expect(page.locator(".work-pairwise")).to_have_attribute("data-dock", "beside")
    boxes = [each.bounding_box() for each in page.locator(".work-step, .work-others .btn, .work-reasons-head").all()]
    assert all(box["width"] > 45 for box in boxes)
    over = [
        (one, two)
        for place, one in enumerate(boxes)
        for two in boxes[:place]
        if one["x"] + 1 < two["x"] + two["width"]
        and two["x"] + 1 < one["x"] + one["width"]
        and one["y"] + 1 < two["y"] + two["height"]
        and two["y"] + 1 < one["y"] + one["height"]
    ]
    assert not over
    picture(page, "workbench-beside")


def test_guidelines_are_open_until_the_first_task_is_submitted(open_page, as_annotator, team):
    project = make_project(team.owner, team.annotator)
    bench = Bench(open_page(as_annotator), project)
    guidelines = bench.page.locator("#work-guidelines")
    bench.on_task(0)
    expect(guidelines).to_contain_text("Prefer what a careful expert would send.")
    bench.press("2", "Control+Enter")
    bench.delivered()
    bench.on_task(1)
    expect(guidelines).to_be_visible()  # the page moves nothing by itself
    bench.page.reload()
    expect(bench.page.locator("#work-main")).to_have_attribute("data-state", "task")
    expect(guidelines).to_be_hidden()


def test_guidelines_that_were_closed_stay_closed_and_a_phone_names_them(open_page, as_annotator, team):
    project = make_project(team.owner, team.annotator)
    page = open_page(as_annotator)
    page.set_viewport_size({"width": 390, "height": 800})
    bench = Bench(page, project)
    bench.on_task(0)
    expect(page.locator("#work-guidelines")).to_be_hidden()  # it would cover the task
    page.get_by_role("button", name="Read them").click()
    expect(page.locator("#work-guidelines")).to_be_visible()
    page.set_viewport_size({"width": 1280, "height": 800})
    page.get_by_role("button", name="Close the guidelines").click()
    page.reload()
    expect(page.locator("#work-main")).to_have_attribute("data-state", "task")
    expect(page.locator("#work-guidelines")).to_be_hidden()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_workbench_has_no_serious_violation(theme, open_page, as_annotator, team):
    if not AXE.exists():
        pytest.skip("axe-core is not there: run `make setup`")
    project = make_project(
        team.owner,
        team.annotator,
        reasons="required",
        dimensions=["Correctness", "Tone"],
        suggestions="before",
        record=judged,
    )
    page = open_page(as_annotator, color_scheme=theme, reduced_motion="reduce")
    page.goto("/")
    for name in ("side-guidelines", "side-progress"):
        page.evaluate(f"localStorage.setItem('work:{name}', 'true')")
    found = violations(page, f"/projects/{project.id}/work")
    expect(page.locator("#work-main")).to_have_attribute("data-state", "task")  # earlier keys do nothing
    for keys in (
        ["2", "r"],
        ["Escape", "b", "ArrowRight", "Enter"],
        ["v", "d"],
        ["Control+Enter"],
        ["?"],
        ["Escape", "Backspace"],
    ):
        for key in keys:
            page.keyboard.press(key)
        page.wait_for_timeout(200)
        found += [f"after {keys}: {each}" for each in page.evaluate(LOOK)]
    assert not found, "\n".join(found)


def test_on_a_phone_a_task_is_done_by_touch_and_nothing_is_cut_off(open_page, as_annotator, team):
    project = make_project(team.owner, team.annotator, dimensions=["Correctness"])
    page = open_page(as_annotator, has_touch=True)
    page.set_viewport_size({"width": 390, "height": 844})
    bench = Bench(page, project)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.locator(".work-step").nth(5).tap()
    page.get_by_role("button", name="Add a reason").tap()
    bench.type("clearer")
    page.get_by_role("button", name="Submit").tap()
    bench.on_task(1)
    bench.delivered()
    assert Answer.objects.get().content["reasons"][0]["text"] == "clearer"
