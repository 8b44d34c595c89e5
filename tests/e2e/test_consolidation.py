"""A reviewer consolidates a project without a mouse."""

import re
import time

import pytest
from playwright.sync_api import expect

from tests.e2e.look import check_look
from tests.team import ApiClient, browser
from tests.timeouts import SECONDS
from tests.webapp.annotation.answers import annotators, answer, make_project, preference, ranking, rubric
from tests.webapp.annotation.review.test_review import decide
from webapp.annotation.agreement import refresh
from webapp.annotation.models import Comment, Resolution
from webapp.annotation.publishing import services as publish

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_pairs_are_decided_and_saved_by_keys_alone(open_page, team):
    made = make_project(team, n=3)
    one, two = annotators(team, made)
    for task, pair in zip(made.tasks.order_by("rank"), [(-3, 3), (1, 2), (2, 2)], strict=True):
        answer(task, one, preference(pair[0], "A names its source."))
        answer(task, two, preference(pair[1], "B is too long."))
    refresh.bring_up_to_date(made)
    opposite, near, _ = made.tasks.order_by("rank")
    page = open_page(browser(team.reviewer))
    page.goto(f"/projects/{made.pk}/review")
    page.keyboard.press("Enter")  # the task with the least agreement comes first
    page.wait_for_url(f"**/review/{opposite.pk}")
    expect(page.locator("[data-undecided]")).to_have_text("3 of 3 rows to decide")
    page.keyboard.press("2")  # takes the strength of the second person
    page.keyboard.press("d")  # drops the first reason
    page.keyboard.press("z")  # undoes that
    page.keyboard.press("e")
    page.keyboard.press("Control+a")
    page.keyboard.type("A names a source; d and 1 are only letters here.")
    page.keyboard.press("Control+Enter")  # takes the wording; one row is still open
    expect(page.locator(".toast").last).to_contain_text("1 row needs a decision")
    page.keyboard.press("k")
    page.keyboard.press("f")
    page.keyboard.type("Say what a source is.")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".remark")).to_contain_text("Say what a source is.")
    page.keyboard.press("Control+Enter")
    page.wait_for_url(f"**/review/{near.pk}")
    found = Resolution.objects.get(task=opposite)
    assert (found.source, found.content["strength"]) == ("consolidated", 3)
    assert [r["text"] for r in found.content["reasons"]] == [
        "A names a source; d and 1 are only letters here.",
        "B is too long.",
    ]
    assert Comment.objects.get().kind == "guidelines"
    page.keyboard.press("ArrowLeft")
    page.wait_for_url(f"**/review/{opposite.pk}")
    expect(page.locator("[data-source]")).to_contain_text("Consolidated")
    expect(page.locator("[data-left]")).to_have_text("1")
    page.keyboard.press("z")
    expect(page.locator("[data-source]")).to_be_empty()
    expect(page.locator("[data-left]")).to_have_text("2")
    assert not Resolution.objects.filter(task=opposite).exists()
    page.get_by_role("link", name="All tasks").click()
    expect(page.locator(".remark")).to_contain_text("Say what a source is.")
    check_look(page)


def test_a_double_click_undoes_one_decision(open_page, team):
    made = make_project(team, n=1)
    for person, strength in zip(annotators(team, made), (-3, 3), strict=True):
        answer(made.tasks.get(), person, preference(strength))
    refresh.bring_up_to_date(made)
    task, api = made.tasks.get(), ApiClient(team.reviewer)
    for value in ("-1", "3"):
        shown = api.get(f"/tasks/{task.pk}/review").json()
        decide(api, task, shown, {"strength": {"action": "set", "value": value}}, drop=True)
    page = open_page(browser(team.reviewer))
    page.goto(f"/projects/{made.pk}/review/{task.pk}")
    undo = page.locator("[data-undo]")
    undo.click()
    expect(page.locator(".toast").last).to_contain_text("The decision was undone.")
    # a slow double click: the first click has its answer before the second comes
    undo.dispatch_event("click", {"detail": 2})
    page.wait_for_timeout(500)
    assert Resolution.objects.get(task=task).content["strength"] == -1


def test_a_reviewer_reads_formulas_and_the_passage_that_a_reason_is_tied_to(open_page, team):
    texts = {"r1": "So $t = 5$ **holds**.", "r2": "The second response, which goes on."}
    made = make_project(team, n=1, responses=[{"id": side, "text": text} for side, text in texts.items()])
    one, two = annotators(team, made)
    reason = {"text": "It gives the equation", "response": "r1", "start": 3, "end": 10}
    answer(made.tasks.get(), one, preference(-3) | {"reasons": [reason]})
    answer(made.tasks.get(), two, preference(-2))
    refresh.bring_up_to_date(made)
    page = open_page(browser(team.reviewer))
    page.goto(f"/projects/{made.pk}/review/{made.tasks.get().pk}")
    expect(page.locator(".response .katex")).to_have_count(1)
    expect(page.locator(".response strong")).to_have_text("holds")
    facts = page.locator(".sheet .item-facts").first
    expect(facts).to_contain_text("about A")
    expect(facts.locator("q")).to_have_text("$t = 5$")


def test_a_ranking_is_worded_anew_from_the_one_that_stands(open_page, team):
    made = make_project(team, kind="ranking", n=1)
    task = made.tasks.get()
    for person, order in zip(annotators(team, made), (["r1", "r2"], ["r2", "r1"]), strict=True):
        answer(task, person, ranking(*order))
    refresh.bring_up_to_date(made)
    page = open_page(browser(team.reviewer))
    page.goto(f"/projects/{made.pk}/review/{task.pk}")
    page.keyboard.press("2")
    page.keyboard.press("e")
    expect(page.locator("[data-edit]")).to_have_value("B > A")
    page.keyboard.press("Control+a")
    page.keyboard.type("A = B")
    page.keyboard.press("Enter")
    expect(page.locator("[data-undecided]")).to_have_text("The row is decided")
    page.keyboard.press("Control+Enter")
    page.wait_for_url(f"**/projects/{made.pk}/review")  # this was the last row
    assert Resolution.objects.get().content["tiers"] == [["r1", "r2"]]


def test_decisions_that_are_not_saved_survive_a_reload_while_the_answers_stand(open_page, team):
    made = make_project(team, n=1)
    task = made.tasks.get()
    one, two = annotators(team, made)
    answer(task, one, preference(-3, "A names its source."))
    answer(task, two, preference(3, "B is too long."))
    refresh.bring_up_to_date(made)
    page = open_page(browser(team.reviewer))
    page.goto(f"/projects/{made.pk}/review/{task.pk}")
    page.keyboard.press("2")
    page.keyboard.press("d")
    undecided = page.locator("[data-undecided]")
    expect(undecided).to_have_text("1 of 3 rows to decide")
    page.reload()
    expect(undecided).to_have_text("1 of 3 rows to decide")
    expect(page.locator(".sheet tbody tr").nth(1)).to_have_attribute("data-state", "drop")
    answer(task, two, preference(2, "B is too long."))  # a new revision, about which nothing was decided
    refresh.bring_up_to_date(made)
    page.reload()
    expect(undecided).to_have_text("3 of 3 rows to decide")
    for key in ("2", "k", "k", "Control+Enter"):
        page.keyboard.press(key)
    page.wait_for_url(f"**/projects/{made.pk}/review")
    assert page.evaluate("Object.keys(localStorage).filter((name) => name.includes('review:'))") == []


def test_a_task_is_sent_back_with_a_message_and_the_letters_are_warned_of(open_page, team):
    made = make_project(team, n=1)
    task = made.tasks.get()
    for person, strength in zip(annotators(team, made), (-3, 3), strict=True):
        answer(task, person, preference(strength))
    refresh.bring_up_to_date(made)
    page = open_page(browser(team.reviewer))
    page.goto(f"/projects/{made.pk}/review/{task.pk}")
    page.keyboard.press("b")
    page.keyboard.press("1")
    expect(page.get_by_role("dialog")).to_contain_text("under other letters")
    page.keyboard.type("The one that begins with a name has the wrong year.")
    page.get_by_role("dialog").get_by_role("button", name="Send back").click()
    page.wait_for_url(f"**/projects/{made.pk}/review")
    assert task.assignments.exclude(sent_back="").get().sent_back.endswith("the wrong year.")


def test_criteria_that_mean_the_same_are_joined_split_and_merged(open_page, team):
    made = make_project(team, "rubric", n=1)
    task = made.tasks.get()
    one, two = annotators(team, made)
    answer(task, one, rubric(("Stays under fifty words", 4.0)))
    answer(task, two, rubric(("Is concise", 8.0)))
    refresh.bring_up_to_date(made)
    page = open_page(browser(team.reviewer))
    page.goto(f"/projects/{made.pk}/review/{task.pk}")
    rows = page.locator(".sheet tbody tr")
    expect(rows).to_have_count(2)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("j")
    expect(rows).to_have_count(1)
    page.keyboard.press("s")
    expect(rows).to_have_count(2)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("j")
    expect(rows).to_have_count(1)
    page.keyboard.press("m")
    expect(page.locator("td.result")).to_contain_text("+6")
    page.keyboard.press("Control+Enter")
    page.wait_for_url(f"**/projects/{made.pk}/review")
    [criterion] = Resolution.objects.get().content["rubric"]["criteria"]
    assert (criterion["text"], criterion["points"]) == ("Stays under fifty words", 6)


def open_agreed(open_page, team):
    """The reviewer's page of a task on which everybody agrees, with its project and the task."""
    made = make_project(team, n=1)
    task = made.tasks.get()
    for member in annotators(team, made):
        answer(task, member, preference(2))
    refresh.bring_up_to_date(made)
    page = open_page(browser(team.reviewer))
    page.goto(f"/projects/{made.pk}/review/{task.pk}")
    return page, made, task


def test_what_is_asked_while_a_request_is_under_way_follows_it(open_page, team):
    """An earlier version lost these requests: the next task was not shown, and a comment was not sent."""
    page, made, task = open_agreed(open_page, team)
    held = []
    page.route("**/comments", lambda route: route.continue_() if held else held.append(route))

    def comment(words: str) -> None:
        page.keyboard.press("c")
        page.keyboard.type(words)
        page.keyboard.press("Control+Enter")
        expect(page.locator("dialog[open]")).to_have_count(0)

    with page.expect_request("**/comments"):
        comment("First.")
    comment("Second.")
    page.keyboard.press("Control+Enter")  # saves, and opens the next task
    assert page.url.endswith(f"/review/{task.pk}") and not Comment.objects.exists()
    held[0].continue_()
    page.wait_for_url(f"**/projects/{made.pk}/review")
    assert list(Comment.objects.order_by("pk").values_list("text", flat=True)) == ["First.", "Second."]


def test_a_comment_is_sent_before_what_the_next_key_asks(open_page, team):
    """The next key may be pressed before the browser reports that the dialog is closed. In an earlier version, saving then opened the next
    task, and the comment was lost.
    """
    page, made, _ = open_agreed(open_page, team)
    held = []
    # otherwise the page is left before a late comment is sent
    page.route("**/resolution", lambda route: held.append(route))
    page.keyboard.press("c")
    page.keyboard.type("Look again.")
    page.evaluate("""async () => {
      document.querySelector("#words form").requestSubmit();
      for (let n = 0; n < 10; n += 1) await null;  // what was waiting for the form goes on; no event has come yet
      document.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", ctrlKey: true }));
    }""")
    expect(page.locator("[data-remarks]")).to_contain_text("Look again.")
    deadline = time.monotonic() + SECONDS
    while not held and time.monotonic() < deadline:
        page.wait_for_timeout(100)
    held[0].continue_()
    page.wait_for_url(f"**/projects/{made.pk}/review")
    assert Comment.objects.get().text == "Look again."


def held_save(page) -> list:
    """Saves the task; the request is held."""
    held = []
    page.route("**/resolution", lambda route: held.append(route))
    with page.expect_request("**/resolution"):
        page.keyboard.press("Control+Enter")
    return held


def test_a_comment_that_is_written_while_the_task_is_saved_is_not_lost(open_page, team):
    """In an earlier version, the page went to the next task when the task was saved, and the comment was gone."""
    page, made, task = open_agreed(open_page, team)
    held = held_save(page)
    page.keyboard.press("c")
    page.keyboard.type("First.")
    page.keyboard.press("Control+Enter")
    page.keyboard.press("c")
    page.keyboard.type("Second.")
    with page.expect_response("**/comments"):
        held[0].continue_()
    expect(page.locator("#words-text")).to_have_value("Second.")
    assert page.url.endswith(f"/review/{task.pk}")
    page.keyboard.press("Control+Enter")
    page.wait_for_url(f"**/projects/{made.pk}/review")
    assert list(Comment.objects.order_by("pk").values_list("text", flat=True)) == ["First.", "Second."]


def test_a_dialog_that_is_closed_does_not_hold_up_the_next_task(open_page, team):
    page, made, task = open_agreed(open_page, team)
    held = held_save(page)
    page.keyboard.press("c")
    page.keyboard.type("Or not.")
    with page.expect_response("**/resolution"):
        held[0].continue_()
    page.wait_for_timeout(200)
    assert page.url.endswith(f"/review/{task.pk}")
    page.keyboard.press("Escape")
    page.wait_for_url(f"**/projects/{made.pk}/review")


def test_a_comment_that_was_not_sent_is_given_back(open_page, team):
    page, _, _ = open_agreed(open_page, team)
    error = {"error": {"message": "The server is starting."}}
    page.route("**/comments", lambda route: route.fulfill(status=503, json=error))
    page.keyboard.press("c")
    page.keyboard.type("Look again.")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#toasts")).to_contain_text("This was not sent: The server is starting.")
    page.unroute("**/comments")
    page.get_by_role("button", name="Open it again").press("Enter")
    expect(page.locator("#words-text")).to_have_value("Look again.")
    page.keyboard.press("Control+Enter")
    expect(page.locator("[data-remarks]")).to_contain_text("Look again.")


def test_comments_written_after_the_session_has_ended_are_each_given_back(open_page, team):
    page, _, _ = open_agreed(open_page, team)
    cookies = page.context.cookies()
    page.context.clear_cookies(name=re.compile("sessionid"))
    for count, text in enumerate(("Look again.", "And here."), 1):
        page.keyboard.press("c")
        page.keyboard.type(text)
        page.keyboard.press("Control+Enter")
        expect(page.locator("#toasts").get_by_role("button", name="Open it again")).to_have_count(count)
    expect(page.locator("#toasts").get_by_role("link", name="Sign in again")).to_have_count(2)
    page.context.add_cookies(cookies)
    page.get_by_role("button", name="Open it again").first.press("Enter")
    expect(page.locator("#words-text")).to_have_value("Look again.")
    page.keyboard.press("Control+Enter")
    expect(page.locator("[data-remarks]")).to_contain_text("Look again.")
    page.get_by_role("button", name="Open it again").press("Enter")
    expect(page.locator("#words-text")).to_have_value("And here.")


def test_a_comment_that_is_too_long_is_kept_whole_and_refused(open_page, team):
    page, _, _ = open_agreed(open_page, team)
    page.keyboard.press("c")
    page.keyboard.insert_text("x" * 2_001)  # as a browser pastes
    page.keyboard.press("Control+Enter")
    field = page.locator("#words-text")
    said = "This text has 2,001 characters. Shorten it to 2,000 or fewer."
    expect(field).to_have_js_property("validationMessage", said)
    expect(field).to_have_value("x" * 2_001)
    page.keyboard.press("Backspace")
    page.keyboard.press("Control+Enter")
    expect(page.locator("[data-remarks]")).to_contain_text("x" * 2_000)


def test_a_key_of_the_navigation_is_never_a_decision(open_page, team):
    """`g d` opens the datasets. In an earlier version its `d` also dropped the row."""
    made = make_project(team, n=1)
    task = made.tasks.get()
    for member, strength in zip(annotators(team, made), (1, 2), strict=True):
        answer(task, member, preference(strength))
    refresh.bring_up_to_date(made)
    page = open_page(browser(team.reviewer))
    page.goto(f"/projects/{made.pk}/review/{task.pk}")
    expect(page.locator(".sheet tbody tr").first).to_be_visible()
    for second in ("x", "k", "1"):  # no page has such a key, and none of these keys decides
        page.keyboard.press("g")
        page.keyboard.press(second)
    results = page.locator("td.result").all_inner_texts()
    assert results and all("to decide" in told for told in results)
    page.keyboard.press("?")
    sheet = page.locator("#keys")
    own, everywhere = sheet.locator(".keys-group").all_inner_texts()
    assert (own.lower(), everywhere.lower()) == ("this page", "everywhere")
    assert sheet.locator("dd").first.inner_text() == "Next row"
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("d")
    page.wait_for_url("**/datasets")


def test_a_key_that_is_taken_is_refused(open_page, as_owner):
    page = open_page(as_owner)
    page.goto("/")
    refused = """async (key) => {
        const { register } = await import(document.querySelector('script[src*="js/main"]').src.replace(/main[^/]*$/, "keys.js"));
        try { register(key, "mine", () => {}); return ""; } catch (error) { return error.message; }
    }"""
    assert "taken" in page.evaluate(refused, "g") and "taken" in page.evaluate(refused, "[")
    assert "taken" in page.evaluate(refused, "g d") and page.evaluate(refused, "q") == ""


def test_what_was_published_stays_inside_its_card(open_page, team):
    made = make_project(team, n=2)
    for task in made.tasks.all():
        for member in annotators(team, made):
            answer(task, member, preference(2))
    refresh.bring_up_to_date(made)
    publish.publish(team.researcher, made, publish.Choice(what="answers", minimum=0.9))
    page = open_page(browser(team.researcher))
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 844})
        page.goto(f"/projects/{made.pk}/answers")
        expect(page.get_by_text("kept").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width


def test_keys_that_come_from_the_field_of_a_closed_dialog_mean_what_they_mean_on_the_page(open_page, team):
    """Until the browser draws the next picture, a closed dialog's field keeps the focus. An earlier version took these keys for the dialog's,
    so nothing was saved.
    """
    page, made, _ = open_agreed(open_page, team)
    page.keyboard.press("c")
    page.keyboard.type("Look again.")
    opened = page.evaluate("""() => {
      const field = document.querySelector("#words textarea");
      const press = (key, ctrlKey) => field.dispatchEvent(new KeyboardEvent("keydown", { key, ctrlKey, bubbles: true, cancelable: true }));
      field.closest("dialog").close();
      press("c", false);  // opens it again
      const again = field.closest("dialog").open;
      field.closest("dialog").close();
      press("Enter", true);
      return again;
    }""")
    assert opened
    page.wait_for_url(f"**/projects/{made.pk}/review")
    assert Resolution.objects.count() == 1 and not Comment.objects.exists()


def test_a_late_report_of_closing_does_not_end_the_next_comment(open_page, team):
    """The browser may report that a dialog was closed when it is open again. An earlier version dropped the second comment then."""
    page, _, _ = open_agreed(open_page, team)
    page.evaluate("""() => {
      const dialog = document.querySelector("#words");
      const press = (key) => document.dispatchEvent(new KeyboardEvent("keydown", { key }));
      press("c");
      dialog.close();
      press("c");  // before the report, which is a task of its own
    }""")
    page.wait_for_function("document.querySelector('#words').open")
    page.evaluate("() => new Promise((done) => setTimeout(done))")  # the report has come
    page.keyboard.type("Look again.")
    page.keyboard.press("Control+Enter")
    expect(page.locator("[data-remarks]")).to_contain_text("Look again.")
