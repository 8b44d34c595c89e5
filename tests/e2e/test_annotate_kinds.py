"""A rubric, grades, an order and ratings, each given in the workbench by keyboard alone."""

import json
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.e2e.test_accessibility import AXE, LOOK
from tests.e2e.workbench import Bench
from tests.webapp.annotation.seed import make_project, pair
from tests.webapp.inference.conftest import chat_server, endpoint  # noqa: F401  fixtures
from webapp.annotation.models import Answer
from webapp.judging.judges.services import create_judge
from webapp.judging.stress_tests import services as stressing

pytestmark = pytest.mark.browser

TIN = "Keep it in a tin 🍵, away from light. Green tea fades within months."
FRIDGE = "Put it in the fridge, where it stays cool and fresh and lasts for ages and ages."
BOWL = "A bowl on the table will do."
TRACE = [
    {"kind": "reasoning", "text": "The tea **must** be somewhere. I search for it."},
    {
        "kind": "call",
        "tool": "search",
        "text": '{"query": "tea storage", "limit": 3, "where": ["kitchen", "cellar", "attic"], "since": 2020}',
    },
    {
        "kind": "result",
        "role": "tool",
        "tool": "search",
        "text": "\n".join(f"{n}. A page about tea" for n in range(30)),
    },
    {"text": "Keep it in the fridge."},
    {"role": "user", "text": "Are you sure?"},
    {"text": "Yes."},
]
RESPONSES: list[dict[str, Any]] = [
    {"id": f"r{n}", "text": text, "origin": "MODEL"} for n, text in enumerate((TIN, FRIDGE, BOWL))
]
RESPONSES[0]["steps"] = TRACE
CRITERIA = [
    {"id": "c1", "text": "Names an opaque container.", "points": 5},
    {"id": "c2", "text": "Says how long tea keeps.", "points": 3},
    {"id": "c3", "text": "Recommends the fridge.", "points": -4, "importance": "pitfall"},
]
SCALES = [
    {"name": "Helpfulness", "labels": {1: "useless", 5: "excellent"}},
    {"name": "Tone", "low": -2, "high": 2},
    {"name": "Truth", "low": 0, "high": 10},
]


@pytest.fixture
def bench(server, open_page, team, as_annotator):
    """`bench(kind, responses, **settings)`: the workbench of the annotator, in a project of two tasks or more."""

    def _open(kind, responses=RESPONSES, **settings):
        examples = [
            pair(key, responses=responses, preferences=[], rubric={"criteria": CRITERIA}) for key in ("q0", "q1")
        ]
        project = make_project(team.researcher, examples, kind=kind, people=[team.annotator], settings=settings)
        return Bench(open_page(as_annotator), project)

    return _open


def stored() -> dict:
    return Answer.objects.get(current=True).content


def says(bench, text) -> None:
    """The texts for screen readers."""
    expect(bench.page.locator("#work-say")).to_contain_text(text)


def refused(bench, text) -> None:
    bench.press("Control+Enter")
    expect(bench.page.locator("#work-problems")).to_contain_text(text)


# ---- grading ----


def test_criteria_are_graded_with_evidence_and_a_note(bench):
    at = bench("grading", RESPONSES[:1])
    rows = at.page.locator(".grade")
    refused(at, "Nothing is answered yet. Say of each criterion whether it is met")
    at.press("y")
    says(at, "Criterion 1: Met. 1 of 3")
    expect(rows.nth(1)).to_have_attribute("aria-current", "true")
    refused(at, "2 things to look at: Criterion 2 is not graded yet.")

    at.press("Escape", "ArrowUp", "ArrowUp", "e", *["ArrowRight"] * 4, "Shift+ArrowRight", "Enter")
    says(at, "Evidence for criterion 1")
    quoted = rows.nth(0).locator("q").text_content()
    at.press("c")
    at.type("yes: nyu")  # in a text field, y, n and u are letters
    at.press("Escape", "o", "n", "ArrowDown", "u")
    expect(at.page.locator(".kind-head .num")).to_have_text("3 of 3")
    at.press("ArrowUp", "ArrowUp", "ArrowDown", "y", "Control+Enter")
    at.delivered()

    grades = stored()["grades"]
    assert [(grade["criterion"], grade["verdict"]) for grade in grades] == [
        ("c1", "met"),
        ("c2", "met"),
        ("c3", "cannot_assess"),
    ]
    assert grades[0]["note"] == "yes: nyu"
    assert TIN[grades[0]["start"] : grades[0]["end"]] == quoted


@pytest.mark.parametrize(("kind", "keys"), [("grading", ("y", "c")), ("trace_steps", ("x", "r"))])
def test_a_note_that_is_too_long_is_kept_whole_and_said_so(bench, kind, keys):
    at = bench(kind, RESPONSES[:1])
    at.press(*keys)
    at.page.keyboard.insert_text("9" * 20_001)
    at.press("Escape", *(["o", "y", "o", "y"] if kind == "grading" else []))
    refused(at, "This text has 20,001 characters. Shorten it to 20,000 or fewer.")
    assert not Answer.objects.exists()


def test_criteria_are_read_as_they_were_meant_and_kept_as_they_were_written(server, open_page, team, as_annotator):
    texts = (
        r"Gives \(x^2\) and `code` in **bold**.",
        "يذكر الإجابة `x` أن الشاي يُحفظ بعيداً عن الضوء.",
        "- no list, $5 or $6",
    )
    criteria = [{"id": f"c{n}", "text": text, "points": 1} for n, text in enumerate(texts)]
    example = pair("q0", responses=RESPONSES[:1], preferences=[], rubric={"criteria": criteria})
    project = make_project(team.researcher, [example], kind="grading", people=[team.annotator], settings={})
    at = Bench(open_page(as_annotator), project)
    first, second, third = (at.page.locator(".grade-text").nth(n) for n in range(3))
    expect(first.locator(".katex")).to_be_visible()
    expect(first.locator("strong")).to_have_text("bold")
    expect(second).to_have_css("direction", "rtl")
    expect(third).to_have_text(texts[2])
    assert first.locator("p, ul").count() == 0
    at.press("v")
    expect(first).to_have_text(texts[0])


def test_evidence_selected_with_the_pointer_counts_characters_and_can_be_taken_away(bench):
    at = bench("grading", RESPONSES[:1])
    at.page.evaluate(
        """text => {
          const node = document.querySelector('.work-text[data-side="Response"]').firstChild;
          const from = node.data.indexOf(text);
          getSelection().setBaseAndExtent(node, from, node, from + text.length);
        }""",
        "Green tea",
    )
    at.press("e")
    expect(at.page.locator(".grade q").first).to_have_text("Green tea")
    at.press("ArrowDown", "e", "Enter", "x", "y", "y", "ArrowUp", "ArrowUp", "n", "Control+Enter")
    at.delivered()
    first, second, _ = stored()["grades"]
    assert (first["start"], first["end"]) == (TIN.index("Green tea"), TIN.index("Green tea") + len("Green tea"))
    assert first["verdict"] == "not_met" and second["start"] is None


def test_a_long_response_is_scrolled_without_leaving_the_criteria(bench):
    at = bench("grading", [{"id": "r0", "text": "A line.\n" * 300}])
    scroller = at.page.locator(".work-card-body")
    at.press("j", "j", "k")
    expect(scroller).not_to_have_js_property("scrollTop", 0)
    at.press("y")
    expect(at.page.locator(".grade").first).to_have_attribute("data-verdict", "met")


@pytest.mark.parametrize(
    "keys, told",
    [
        ("yun", "You: 1 met, 1 not met, 1 cannot assess. A model disagrees on criterion 2: met, 3: met."),
        ("yyy", "A model agrees on all 3."),
    ],
)
def test_a_models_view_afterwards_names_the_criteria_it_sees_differently(
    server, open_page, team, as_annotator, keys, told
):
    grades = [{"criterion": f"c{n}", "verdict": "met"} for n in (3, 1, 2)]
    views = [{"subject": {"response": "r0"}, "content": {"grades": grades}}]
    parts = {
        "responses": RESPONSES[:1],
        "preferences": [],
        "rubric": {"criteria": CRITERIA},
        "meta": {"suggestions": views},
    }
    settings = {"suggestions": "after"}
    people = [team.annotator]
    project = make_project(team.researcher, [pair("q0", **parts)], kind="grading", people=people, settings=settings)
    at = Bench(open_page(as_annotator), project)
    at.press(*keys, "Control+Enter")
    expect(at.page.locator("[data-subject=after]")).to_contain_text(told)


# ---- ranking ----


def test_responses_are_put_in_an_order_with_a_tie(bench):
    at = bench("ranking")
    text = {
        letter: at.page.locator(f'.order-item[data-letter="{letter}"] .order-text').text_content() for letter in "ABC"
    }
    ids = {response["text"]: response["id"] for response in RESPONSES}
    refused(at, "Nothing is answered yet. Choose the responses one after the other")
    at.press("3", "1")
    refused(at, "Not placed yet: B.")
    at.press("Escape", "2")
    says(at, "Response B: number 3.")
    at.press("t")
    says(at, "Response B: number 2, tied with A.")
    at.press("ArrowUp", "ArrowUp", "Shift+ArrowDown")
    says(at, "Response C: number 3.")
    at.press("Control+Enter")
    at.delivered()
    id_of = {letter: next(ids[whole] for whole in ids if whole.startswith(text[letter][:20])) for letter in "ABC"}
    assert [sorted(tier) for tier in stored()["tiers"]] == [sorted([id_of["A"], id_of["B"]]), [id_of["C"]]]


def test_the_best_and_the_worst_are_chosen_kept_as_a_draft_and_opened_again(bench):
    at = bench("best_worst")
    item = {letter: at.page.locator(f'.order-item[data-letter="{letter}"]') for letter in "ABC"}
    refused(at, "Nothing is answered yet. Choose the best response and then the worst")
    at.press("2")
    says(at, "Response B is the best.")
    refused(at, "Choose the worst response")
    at.press("Escape", "2")
    says(at, "Response B.")
    at.press("2", "1")
    says(at, "Response A is the worst.")
    at.press("ArrowDown", "ArrowDown", "w")
    says(at, "Response C is the worst.")
    expect(item["A"].get_by_role("button", name="Worst: A")).to_have_attribute("aria-pressed", "false")
    at.saved()
    at.page.reload()
    expect(item["B"].get_by_role("button", name="Best: B")).to_have_attribute("aria-pressed", "true")
    shown = {letter: item[letter].locator(".order-text").text_content() for letter in "ABC"}
    at.press("Control+Enter")
    at.delivered()
    id_of = {letter: next(r["id"] for r in RESPONSES if r["text"].startswith(shown[letter][:20])) for letter in "ABC"}
    assert (stored()["best"], stored()["worst"]) == (id_of["B"], id_of["C"])
    at.press("Control+z")
    expect(item["B"].get_by_role("button", name="Best: B")).to_have_attribute("aria-pressed", "true")
    at.press("u")
    says(at, "Cannot assess.")
    at.press("Control+Enter")
    at.delivered()
    assert stored() == {"verdict": "cannot_assess", "best": None, "worst": None, "note": ""}


def test_the_list_to_be_ordered_shows_how_the_responses_begin(bench):
    texts = [r"It is $\frac{1}{2}$.", r"So \(x^2\) and `y`:" + " and" * 200 + r" $\frac{3}{4}$", "Neither."]
    at = bench("ranking", [{"id": f"r{n}", "text": text} for n, text in enumerate(texts)])
    expect(at.page.locator(".order-text .katex")).to_have_count(2)
    expect(at.page.locator(".order-text code")).to_have_text("y")
    # the styles of formulas may come after the formulas
    at.page.wait_for_function(
        "new Set([...document.querySelectorAll('.order-item')].map((row) => row.offsetHeight)).size === 1"
    )
    at.press("v")
    expect(at.page.locator(".order-text .katex")).to_have_count(0)
    expect(at.page.locator(".order-text", has_text="It is")).to_have_text(texts[0])


def test_the_sheet_has_a_key_for_each_response_there_is(bench):
    at = bench("ranking")
    at.press("?")
    expect(at.page.get_by_role("button", name="Response C: place it next")).to_be_visible()
    expect(at.page.get_by_role("button", name="Response D: place it next")).to_have_count(0)


def test_a_response_is_dragged_between_and_onto_others(bench):
    at = bench("ranking")
    item = {letter: at.page.locator(f'.order-item[data-letter="{letter}"]') for letter in "ABC"}
    at.press("1", "2", "3")
    item["C"].drag_to(item["A"])
    expect(item["C"].locator(".order-rank")).to_have_text("=")
    item["C"].drag_to(at.page.locator(".order-gap").first)
    expect(item["C"].locator(".order-rank")).to_have_text("1")
    expect(item["A"].locator(".order-rank")).to_have_text("2")


def test_the_best_of_several_is_one_key(bench):
    at = bench("ranking", ranking="best")
    at.press("2")
    says(at, "Response B is the best.")
    at.press("Control+Enter")
    at.delivered()
    best, rest = stored()["tiers"]
    assert len(best) == 1 and len(rest) == 2


def test_what_cannot_be_ranked_is_said_so(bench):
    at = bench("ranking")
    at.press("1", "u", "Control+Enter")
    at.delivered()
    assert (stored()["verdict"], stored()["tiers"]) == ("cannot_assess", [])


# ---- rating ----


def test_a_response_is_rated_on_every_scale(bench):
    at = bench("rating", RESPONSES[:1], scales=SCALES)
    expect(at.page.locator(".scale [aria-pressed=true]")).to_have_count(0)
    at.press("4")
    refused(at, "2 things to look at: Tone is not rated yet.")
    at.press("Escape", "1")  # the first step of a scale that begins below 0
    says(at, "Tone: −2")
    at.press("ArrowUp", "+", "+", "ArrowDown", "-", "-", "Control+Enter")
    at.delivered()
    assert stored()["ratings"] == {"Helpfulness": 4, "Tone": 0, "Truth": 9}


def test_a_scale_that_cannot_be_judged_is_an_answer_and_not_a_gap(bench):
    at = bench("rating", RESPONSES[:1], scales=SCALES[:1])
    at.press("u", "Control+Enter")
    at.delivered()
    assert stored()["ratings"] == {"Helpfulness": None}


# ---- rubric ----


def count_words(at: Bench) -> None:
    """Chooses “number of words” as the verifier of the current criterion. One letter must do, because a list forgets letters after a
    second.
    """
    at.press("c", "N")
    expect(at.page.locator(".verifier-form select").first).to_have_value("word_count")


def test_a_rubric_is_written_from_the_instruction_tested_and_revised(bench):
    at = bench("rubric")
    texts = at.page.locator(".criterion-text")
    hints = at.page.locator(".criterion .hint")
    assert not any(response["text"][:15] in at.page.content() for response in RESPONSES)

    at.press("Enter")
    at.type("Names a container and explains why it helps.")
    expect(hints).to_contain_text("joins two checks")
    at.press("Enter")
    at.type("Has at most eight words.")
    at.press("Escape")
    count_words(at)
    at.press("Tab", "Tab")
    at.type("8")
    at.press("Tab", "Tab", "Tab")
    at.type("one two three")
    expect(at.page.locator(".verifier-found")).to_have_text("Met 3 words; asked: at most 8")
    at.press("Escape", "n")
    at.type("Recommends the fridge.")
    at.press("Escape", "i", "i", "-")
    says(at, "-6 points.")
    at.press("d", "Delete", "Shift+ArrowUp", "ArrowUp", "Delete", "z")
    expect(texts).to_have_count(3)
    at.press("Control+Enter")

    table = at.page.locator(".stress-table")
    expect(table.locator("tbody tr")).to_have_count(3)
    expect(table.locator("tbody tr", has_text="eight words")).to_contain_text("yes")
    expect(table.locator("tbody tr", has_text="fridge")).to_contain_text("needs a judge or a person")
    assert all(response["text"] in at.page.content() for response in RESPONSES)

    at.press("r")
    expect(at.page.locator(".stress-live .stress-table")).to_be_visible()
    first = at.page.get_by_role("textbox", name="Criterion 1", exact=True)
    expect(first).to_have_value("Names a container and explains why it helps.")
    at.press("Enter", "Control+a")
    at.type("Names a closed container.")
    expect(at.page.locator(".stress-live tbody tr").first).to_contain_text("Names a closed container.")
    at.press("Control+Enter")
    expect(at.page.locator(".work-after .stress-table")).to_be_visible()
    at.press("Enter")
    at.on_task(None)
    expect(texts).to_have_count(1)

    kept = [answer.content["rubric"]["criteria"] for answer in Answer.objects.order_by("revision")]
    assert [len(criteria) for criteria in kept] == [3, 3]
    assert kept[0][0]["text"] != kept[1][0]["text"] and kept[0][0]["id"] == kept[1][0]["id"]
    short = next(criterion for criterion in kept[1] if "eight" in criterion["text"])
    assert (short["kind"], short["verifier"]) == ("hard", {"name": "word_count", "args": {"max": 8}})
    pitfall = next(criterion for criterion in kept[1] if "fridge" in criterion["text"])
    assert (pitfall["importance"], pitfall["points"]) == ("pitfall", -6)


def test_the_table_fills_as_the_judge_of_the_stress_test_answers(bench, team, chat_server, endpoint):  # noqa: F811
    chat_server.answer = lambda body: json.dumps(
        {"explanation": "It says so.", "met": RESPONSES[0]["text"] in body["messages"][-1]["content"]}
    )
    judge = create_judge(team.researcher, name="Strict", spec={"kind": "criterion"}, endpoint=endpoint)
    at = bench("rubric", stress_judge=judge.pk)
    at.press("Enter")
    at.type("Explains why it helps.")
    at.press("Control+Enter")
    row = at.page.locator(".work-after .stress-table tbody tr").first
    expect(row).to_contain_text("needs a judge or a person")
    status = at.page.locator(".work-after [role=status]")
    expect(status).to_contain_text("A judge is reading them for 1 criterion")

    stressing.stress(Answer.objects.get().pk)  # the work of a worker
    expect(row.locator("td").last).to_have_text("yes")
    expect(row.locator("td[data-tone=good]")).to_have_count(1)
    expect(row.locator("td[title='It says so.']")).to_have_count(len(RESPONSES))
    expect(status).not_to_contain_text("judge")
    assert "Strict" not in at.page.content()


def test_a_criterion_keeps_the_tags_its_author_gives_it(bench):
    at = bench("rubric")
    at.press("g")  # beside an open panel, a line has no tools of its own
    at.press("Enter")
    at.type("Names a closed container.")
    at.press(*["Tab"] * 10)  # over points, kind, importance, verifier and the tools
    at.type("storage, food safety,, storage ")
    at.press("Control+Enter")
    expect(at.page.locator(".stress-table")).to_be_visible()
    assert Answer.objects.get().content["rubric"]["criteria"][0]["tags"] == ["storage", "food safety"]
    at.press("r")
    expect(at.page.get_by_role("textbox", name="Tags, separated by commas")).to_have_value("storage, food safety")


def test_a_criterion_can_be_read_beside_an_open_panel(bench):
    at = bench("rubric")
    at.press("n")
    at.press("Escape")
    at.press("l")  # progress
    chosen = at.page.get_by_label("Importance").first
    expect(chosen).to_be_visible()
    expect(chosen).to_have_js_property("scrollWidth", chosen.evaluate("field => field.clientWidth"))
    assert chosen.bounding_box()["width"] > 80


def test_on_a_phone_a_criterion_can_be_moved_and_deleted_by_touch(bench):
    at = bench("rubric")
    at.page.set_viewport_size({"width": 390, "height": 844})
    prompt, form = (at.page.locator(place).bounding_box()["width"] for place in ("#work-prompt", "#work-widget"))
    assert prompt == form > 350  # also with a short question
    texts = at.page.locator(".criterion-text")
    texts.first.fill("Names a tin")
    at.page.get_by_role("button", name="New criterion").click()
    texts.nth(1).fill("Says how long")
    at.page.locator(".criterion").nth(1).get_by_role("button", name="Move up").click()
    expect(texts.first).to_have_value("Says how long")
    at.page.locator(".criterion").first.get_by_role("button", name="Delete").click()
    expect(texts).to_have_count(1)
    expect(texts.first).to_have_value("Names a tin")
    assert at.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_rubric_that_cannot_score_is_not_submitted(bench):
    at = bench("rubric")
    refused(at, "Nothing is answered yet. Write at least one criterion.")
    at.press("Escape", "Enter")
    at.type("Apologises.")
    at.press("Escape", *["-"] * 5)
    refused(at, "At least one criterion must earn points.")
    assert not Answer.objects.exists()


def test_a_new_criterion_is_written_on_the_line_that_is_still_empty(bench):
    at = bench("rubric")
    kinds = at.page.get_by_role("group", name="Kind").first
    expect(kinds.get_by_role("button")).to_have_count(2)
    tops = {each.bounding_box()["y"] for each in kinds.get_by_role("button").all()}
    assert len(tops) == 1, "the kinds are beside each other, with open guidelines too"
    at.press("n")
    at.type("Names tea.")
    expect(at.page.locator(".criterion")).to_have_count(1)
    at.press("Enter", "Enter")  # the second one changes nothing: its line is empty
    expect(at.page.locator(".criterion")).to_have_count(2)


def test_the_id_of_a_deleted_criterion_is_not_given_to_another_one(bench):
    at = bench("rubric")
    at.press("Enter")
    for text in ("Names tea.", "Names milk."):
        at.type(text)
        at.press("Enter")
    at.press("Backspace", "Escape", "Delete", "n")
    at.type("Names a cup.")
    at.press("Control+Enter")
    expect(at.page.locator(".stress-table tbody tr")).to_have_count(2)
    kept = {criterion["text"]: criterion["id"] for criterion in stored()["rubric"]["criteria"]}
    assert kept == {"Names tea.": "c1", "Names a cup.": "c4"}


def test_a_task_comes_with_the_list_that_its_keys_choose_from(server, open_page, team, as_annotator):
    """The list of verifiers is loaded with the task. A letter that was pressed before the list had arrived chose nothing."""
    project = make_project(team.researcher, [pair("q0")], kind="rubric", people=[team.annotator], settings={})
    page, held = open_page(as_annotator), []
    page.route("**/api/v1/verifiers", lambda route: held.append(route))
    with page.expect_response("**/claim"), page.expect_request("**/api/v1/verifiers"):
        page.goto(f"/projects/{project.pk}/work")
    expect(page.locator("#work-prompt")).to_be_hidden()
    held[0].continue_()
    expect(page.locator("#work-main")).to_have_attribute("data-state", "task")
    for key in ("c", "N"):
        page.keyboard.press(key)
    expect(page.locator(".verifier-form select").first).to_have_value("word_count")


def test_a_task_is_shown_though_the_list_of_verifiers_fails(server, open_page, team, as_annotator):
    project = make_project(team.researcher, [pair("q0")], kind="rubric", people=[team.annotator], settings={})
    page = open_page(as_annotator)
    page.route("**/api/v1/verifiers", lambda route: route.abort())
    page.goto(f"/projects/{project.pk}/work")
    expect(page.locator("#work-main")).to_have_attribute("data-state", "task")
    page.keyboard.press("c")
    expect(page.locator(".verifier-form")).to_contain_text("The list of verifiers could not be loaded")


def test_an_incomplete_verifier_is_said_at_its_criterion(bench):
    at = bench("rubric")
    at.press("Enter")
    at.type("Is short.")
    at.press("Escape")
    count_words(at)
    expect(at.page.locator('.hint[data-code="verifier"]')).to_contain_text("give min, max or exactly")
    at.press("Escape")
    refused(at, "The verifier cannot run")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(
    ("kind", "count"),
    [("grading", 1), ("ranking", 3), ("rating", 1), ("rubric", 3), ("best_worst", 3), ("trace_steps", 1)],
)
def test_each_kind_is_accessible_to_everybody(bench, kind, count, theme):
    if not AXE.exists():
        pytest.skip("axe-core is not there: run `make setup`")
    at = bench(kind, RESPONSES[:count], scales=SCALES)
    at.page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    at.press("y", "1", "c")
    at.page.wait_for_load_state("networkidle")
    at.page.evaluate(AXE.read_text())
    assert at.page.evaluate(LOOK) == []


# ---- without a network ----

ENTERED = {
    "grading": ["y", "n", "u"],
    "ranking": ["2", "1", "3"],
    "rating": ["5", "3", "8"],
    "pairwise": ["6"],
    "trace_steps": ["y", "y", "y", "y"],
}


@pytest.mark.parametrize("kind", ENTERED)
def test_what_is_entered_while_the_network_is_gone_arrives_when_it_is_back(bench, kind):
    responses = {"grading": 1, "rating": 1, "pairwise": 2, "trace_steps": 1}.get(kind, 3)
    at = bench(kind, RESPONSES[:responses], scales=SCALES)
    at.page.context.set_offline(True)
    at.press(*ENTERED[kind])
    at.says("kept in this browser")
    at.press("Control+Enter")
    at.says("1 submission waits to be sent")
    assert not Answer.objects.exists()
    at.page.context.set_offline(False)
    at.delivered()
    assert Answer.objects.filter(current=True).count() == 1


@pytest.mark.parametrize("kind", ["rubric", "rationale"])
def test_what_is_written_while_the_network_is_gone_arrives_when_it_is_back(bench, kind):
    at = bench(kind, RESPONSES[:2], stress_test=False)
    at.page.context.set_offline(True)
    at.press("r" if kind == "rationale" else "Enter")
    at.type("Names an opaque container")
    if kind == "rationale":
        at.page.get_by_role("textbox", name="Your rationale").fill("It names a tin.")
    at.says("kept in this browser")
    at.press("Control+Enter")
    at.says("1 submission waits to be sent")
    at.page.context.set_offline(False)
    at.delivered()
    said = stored()
    items = said["reasons"] if kind == "rationale" else said["rubric"]["criteria"]
    assert [item["text"] for item in items] == ["Names an opaque container"]


TURNS = [
    {"role": "user", "content": "A long story about tea. " * 60},
    {"role": "assistant", "content": "I see, go on. " * 40},
    {"role": "user", "content": "Question: how do I keep it?"},
    {"role": "assistant", "content": "Do you mean leaves or bags? " * 12},
]
SET = {
    "grading": {},
    "rating": {"scales": SCALES},
    "ranking": {},
}


@pytest.mark.parametrize("kind", SET)
def test_it_opens_at_the_last_question_and_the_reference_is_folded(server, open_page, team, as_annotator, kind):
    parts = {"responses": RESPONSES, "preferences": [], "rubric": {"criteria": CRITERIA}}
    example = pair("q0", prompt=TURNS, reference="THE REFERENCE. " * 80, **parts)
    project = make_project(team.researcher, [example], kind=kind, people=[team.annotator], settings=SET[kind])
    page = Bench(open_page(as_annotator), project).page
    box, question = page.locator(".work-prompt-body"), page.get_by_text("Question: how do I keep it?")
    expect(question).to_be_in_viewport()
    outer, inner = box.bounding_box(), question.bounding_box()
    assert outer["y"] <= inner["y"] and inner["y"] + inner["height"] <= outer["y"] + outer["height"]
    assert inner["y"] - outer["y"] < 60  # because people read it first
    expect(page.get_by_text("THE REFERENCE.")).to_be_hidden()
    page.get_by_text("Reference answer").click()
    expect(page.get_by_text("THE REFERENCE.")).to_be_visible()
    box.hover()
    page.mouse.wheel(0, -4000)
    expect(page.get_by_text("A long story about tea.").first).to_be_in_viewport()


# ---- steps of a trace ----


def test_steps_of_a_trace_are_judged_by_keyboard_up_to_the_first_error(bench):
    at = bench("trace_steps", RESPONSES[:1])
    rows = at.page.locator(".trace-own")
    expect(rows).to_have_count(4)
    expect(at.page.locator(".trace-context")).to_have_count(2)
    refused(at, "Nothing is answered yet. Say of each step whether it is correct")
    at.press("y")
    says(at, "Step 1: Correct.")
    expect(rows.nth(1)).to_have_attribute("aria-current", "true")
    refused(at, "3 things to look at: Step 2 has no verdict yet.")

    at.press("Escape", "ArrowDown", "x")
    says(at, "The first error is at step 4.")
    expect(rows.nth(1)).to_have_attribute("data-verdict", "correct")
    expect(at.page.locator(".trace-first:visible")).to_have_count(1)
    at.press("r")
    at.type("It gets wet: yn")
    at.saved()
    at.page.reload()
    expect(at.page.get_by_role("textbox", name="Reason for step 4")).to_have_value("It gets wet: yn")
    at.press("Control+Enter")
    at.delivered()
    assert stored() == {
        "steps": [
            {"step": 1, "verdict": "correct", "reason": ""},
            {"step": 2, "verdict": "correct", "reason": ""},
            {"step": 4, "verdict": "incorrect", "reason": "It gets wet: yn"},
        ],
        "first_error": 4,
        "note": "",
    }


def test_the_mark_of_the_first_error_follows_the_verdicts(bench):
    at = bench("trace_steps", RESPONSES[:1])
    first = at.page.locator(".trace-own:has(.trace-first:visible) .trace-title > .num")
    at.press("ArrowDown", "ArrowDown", "n")
    expect(first).to_have_text("4")
    at.press("ArrowUp", "n")
    expect(first).to_have_text("2")
    at.press("n")  # undone
    expect(first).to_have_text("4")
    at.page.get_by_role("button", name="Show all of it").click()
    expect(at.page.get_by_role("button", name="Show less")).to_have_count(1)
    at.press("ArrowDown", "y", "ArrowUp", "ArrowUp", "ArrowUp", "y", "y", "u", "Control+Enter")
    at.delivered()
    assert stored()["first_error"] is None
