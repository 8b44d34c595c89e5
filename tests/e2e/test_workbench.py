"""The workbench: by keyboard alone, with interruptions of the network, in two tabs, and with changed answers."""

import time

import pytest
from playwright.sync_api import expect

from tests.e2e.workbench import TEXTS, Bench, make_project, until
from tests.timeouts import SECONDS
from webapp.annotation.models import Answer, Assignment, Comment, Guidelines, Participant, Project

pytestmark = pytest.mark.browser


@pytest.fixture
def project(server, team):
    return make_project(team.owner, team.annotator, reasons="required", dimensions=["Correctness"])


@pytest.fixture
def bench(open_page, as_annotator, project):
    return Bench(open_page(as_annotator), project)


def answer(bench: Bench, digit: str, reason: str) -> None:
    bench.press(digit, "r")
    bench.type(reason)
    bench.press("Control+Enter")


def letter_of(side: str) -> str:
    """The side on which the annotator of the first task sees this response."""
    order = Assignment.objects.order_by("task__rank").first().order
    return "AB"[order.index(["good", "bad"].index(side))]


def test_a_pair_is_judged_with_reasons_and_a_passage_by_keyboard_alone(bench):
    bad = letter_of("bad")
    bench.press("7" if bad == "A" else "1", "ArrowDown", "4", "ArrowUp", "r")  # the good one is much better
    bench.type("names the wrong year")
    bench.press("Enter")
    bench.type("answers something else")
    bench.press("Control+Shift+ArrowUp", "ArrowDown", "Escape", bad.lower())
    # of “The first compiler was written in 1987”, the last two words
    bench.press(*["ArrowRight"] * 6, "Shift+ArrowLeft", "Enter")
    expect(bench.page.locator(".work-reason-span q")).to_have_text("in 1987")
    bench.press("Control+Enter")
    bench.on_task(1)

    bench.delivered()
    stored = Answer.objects.get().content
    start = TEXTS["bad"].index("in 1987")
    assert stored["strength"] == -3 and stored["dimensions"] == {"Correctness": 0}
    assert [reason["text"] for reason in stored["reasons"]] == ["answers something else", "names the wrong year"]
    assert stored["reasons"][1]["response"] == "bad"
    assert (stored["reasons"][1]["start"], stored["reasons"][1]["end"]) == (start, start + len("in 1987"))


def test_the_label_of_a_dimension_says_that_it_may_stay_empty(bench):
    rows = bench.page.get_by_role("group", name="optional")
    expect(rows).to_have_count(1)
    expect(rows.locator("legend")).to_have_text("Correctness optional")
    answer(bench, "6", "clearer")
    bench.on_task(1)
    bench.delivered()
    assert Answer.objects.get().content["dimensions"] == {"Correctness": None}


def test_a_blank_draft_is_never_submitted_and_what_is_missing_is_said_at_its_place(bench):
    bench.press("Control+Enter")
    expect(bench.page.locator("#work-problems")).to_have_text(
        "Nothing is answered yet. Choose one of the seven steps, or both bad, or cannot assess."
    )
    expect(bench.page.locator(".work-scale + .error")).to_have_count(1)
    bench.press("6", "Control+Enter")
    missing = bench.page.locator(".work-reasons-head + .error, .work-reasons-head .error")
    expect(missing).to_have_text("This project asks for at least one reason.")
    expect(bench.page.get_by_role("button", name="Add a reason")).to_be_focused()
    bench.on_task(0)
    bench.press("Escape", "r")
    bench.type("clearer")
    expect(missing).to_have_count(0)
    assert not Answer.objects.exists()


def test_a_pasted_text_that_is_too_long_is_kept_whole_and_said_so(bench):
    bench.press("6", "r")
    bench.page.keyboard.insert_text("word " * 420 + "end")  # as a browser pastes: a field with a limit would cut it
    bench.press("Control+Enter")
    expect(bench.page.locator("#work-problems")).to_have_text(
        "This text has 2,103 characters. Shorten it to 2,000 or fewer."
    )
    bench.saved()
    bench.page.reload()
    bench.on_task(0)
    expect(bench.reason(1)).to_have_value("word " * 420 + "end")
    bench.reason(1).fill("shorter")
    bench.press("Control+Enter")
    bench.on_task(1)


def test_keys_rest_while_typing_in_dialogs_on_buttons_and_with_alt(bench):
    bench.press("r")
    bench.type("17f?gu0")
    assert bench.choice() == ""
    expect(bench.reason(1)).to_have_value("17f?gu0")
    bench.press("Escape", "Alt+3", "?")
    expect(bench.page.locator("#work-keys")).to_be_visible()
    bench.press("3")
    bench.page.locator("#work-keys").press("Escape")
    bench.page.get_by_role("button", name="Both bad").focus()
    bench.press("5")
    assert bench.choice() == ""
    bench.press("Escape", "5")
    assert bench.choice() == "1"


def test_the_network_goes_away_in_the_middle_and_nothing_is_lost(bench):
    bench.press("2")
    bench.saved()
    bench.page.context.set_offline(True)
    bench.press("r")
    bench.type("written without a network")
    bench.says("kept in this browser")
    bench.press("Control+Enter")
    bench.on_task(1)  # this task was loaded already
    bench.says("1 submission waits to be sent")
    bench.press("6", "r")
    bench.type("also offline")
    assert not Answer.objects.exists()

    bench.page.context.set_offline(False)
    bench.delivered()
    bench.saved()
    assert Answer.objects.get().content["reasons"][0]["text"] == "written without a network"
    assert Assignment.objects.exclude(draft=None).get().draft["reasons"][0]["text"] == "also offline"


def test_a_tab_closed_offline_is_made_good_by_the_next_one(bench):
    bench.press("2")
    bench.saved()
    bench.page.route("**/api/v1/**", lambda route: route.abort())  # the page itself can be loaded again
    bench.press("r")
    bench.type("only in this browser")
    bench.says("kept in this browser")
    bench.page.unroute_all()
    bench.page.route("**/draft", lambda route: route.abort())  # and the last words are not sent either
    bench.page.goto("/")
    bench.page.unroute_all()
    bench.open()
    expect(bench.reason(1)).to_have_value("only in this browser")
    bench.saved()
    assert Assignment.objects.exclude(draft=None).get().draft["reasons"][0]["text"] == "only in this browser"


def test_a_submission_that_waited_is_sent_by_the_next_page(bench):
    bench.page.route("**/submit", lambda route: route.abort())
    answer(bench, "2", "clearer")
    bench.on_task(1)
    bench.page.goto("/")
    bench.page.unroute_all()
    bench.open()
    bench.on_task(1)
    bench.delivered()
    assert Answer.objects.get().content["reasons"][0]["text"] == "clearer"


def test_a_browser_that_stores_nothing_can_be_worked_with(open_page, as_annotator, project):
    page = open_page(as_annotator)
    page.add_init_script("Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError') }")
    bench = Bench(page, project)
    answer(bench, "2", "clearer")
    bench.on_task(1)
    bench.press("3")
    bench.saved()
    bench.delivered()
    assert Answer.objects.get().content["reasons"][0]["text"] == "clearer"


def test_leaving_the_page_sends_what_was_typed_last(bench):
    bench.press("3", "r")
    bench.type("typed at the last moment")
    bench.page.goto("/")  # before the pause after which a draft is saved
    expect(bench.page.locator("h1")).to_be_visible()
    until(lambda: Assignment.objects.filter(draft__reasons__0__text="typed at the last moment").count() == 1)


def test_a_reload_brings_the_draft_back(bench):
    bench.press("6", "r")
    bench.type("to be kept")
    bench.saved()
    bench.page.reload()
    expect(bench.reason(1)).to_have_value("to be kept")
    assert bench.choice() == "2"
    bench.saved()


def test_two_tabs_do_not_overwrite_each_other_silently(bench, open_page, as_annotator, project):
    other = Bench(open_page(as_annotator), project)
    bench.press("1")
    bench.saved()
    other.press("7")
    other.says("Changed elsewhere")
    note = other.page.locator("[data-subject=conflict]")
    expect(note).to_contain_text("Here: B much better")
    expect(note).to_contain_text("There: A much better")
    note.get_by_role("button", name="Use the other version").click()
    assert other.choice() == "-3"

    bench.press("2")
    bench.saved()
    other.press("6")
    other.says("Changed elsewhere")
    other.page.get_by_role("button", name="Keep this version").click()
    other.saved()
    assert Assignment.objects.exclude(draft=None).get().draft["strength"] == 2


def test_a_task_submitted_in_one_tab_can_be_replaced_from_the_other(bench, open_page, as_annotator, project):
    other = Bench(open_page(as_annotator), project)
    answer(bench, "1", "first thought")
    bench.delivered()
    other.press("7", "r")
    other.type("second thought")
    other.says("No longer yours")
    other.page.get_by_role("button", name="Open it again").click()
    expect(other.page.locator("[data-subject=reopened]")).to_be_visible()
    expect(other.reason(1)).to_have_value("second thought")
    other.press("Control+Enter")
    other.delivered()
    assert Answer.objects.get(current=True).content["reasons"][0]["text"] == "second thought"
    assert Answer.objects.count() == 2


def test_a_tab_to_which_a_person_comes_back_goes_on_where_the_other_one_is(bench, open_page, as_annotator, project):
    other = Bench(open_page(as_annotator), project)
    for number in range(3):  # two of them are also in the hand of the other tab
        answer(bench, "1", "clear")
        bench.delivered()
        bench.on_task(number + 1)
    other.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    other.on_task(3)
    expect(other.page.locator(".toast")).to_contain_text("was submitted in another tab")
    assert other.choice() == ""


def test_after_a_task_that_was_submitted_elsewhere_comes_one_that_is_open(bench, open_page, as_annotator, project):
    other = Bench(open_page(as_annotator), project)
    for number in range(2):
        answer(bench, "1", "clear")
        bench.delivered()
        bench.on_task(number + 1)
    other.press("7")
    other.says("No longer yours")
    other.page.get_by_role("button", name="Continue").click()
    other.on_task(2)


def test_the_last_submission_is_opened_again_by_key_and_changed(bench):
    answer(bench, "2", "first thought")
    bench.on_task(1)
    bench.press("Control+z")
    bench.on_task(0)
    expect(bench.reason(1)).to_have_value("first thought")
    bench.press("6", "Control+Enter")
    bench.delivered()
    assert Answer.objects.filter(current=False).count() == 1 and Answer.objects.filter(current=True).count() == 1


def test_a_submission_that_has_not_gone_out_is_taken_back_without_a_network(bench):
    bench.press("2", "r")
    bench.type("first thought")
    bench.saved()
    bench.page.context.set_offline(True)
    bench.press("Control+Enter")
    bench.on_task(1)
    bench.says("to be sent")
    bench.press("Control+z")
    bench.on_task(0)
    expect(bench.reason(1)).to_have_value("first thought")
    bench.press("7")
    bench.page.context.set_offline(False)
    bench.saved()
    bench.press("Control+Enter")
    bench.delivered()
    assert Answer.objects.count() == 1 and abs(Answer.objects.get().content["strength"]) == 3
    assert Answer.objects.get().content["reasons"][0]["text"] == "first thought"


def test_what_the_server_refuses_comes_back_with_its_words_at_the_place(bench):
    fields = [{"path": "content.reasons", "message": "are required: give two"}]
    error = {"code": "invalid", "message": "The answer is not complete.", "fields": fields, "id": "x"}
    bench.page.route("**/submit", lambda route: route.fulfill(status=422, json={"error": error}))
    answer(bench, "2", "only one")
    bench.on_task(0)
    expect(bench.page.locator("#work-problems")).to_have_text("are required: give two")
    expect(bench.page.get_by_role("button", name="Add a reason")).to_be_focused()
    expect(bench.reason(1)).to_have_value("only one")


def test_older_submissions_are_listed_and_opened(bench):
    for number in range(2):
        bench.on_task(number)
        answer(bench, "2", f"reason {number}")
    bench.on_task(2)
    bench.press("l")
    listed = bench.page.locator(".work-mine li")
    expect(listed).to_have_count(2)
    listed.filter(has_text="Question 0").get_by_role("button", name="Reopen").click()
    bench.on_task(0)
    expect(bench.page.locator("[data-subject=reopened]")).to_be_visible()


def test_an_answer_that_is_submitted_again_is_one_answer_of_this_session(bench):
    answer(bench, "2", "first thought")
    bench.on_task(1)
    bench.delivered()
    bench.press("l")
    session = bench.page.locator("#work-progress dt", has_text="In this session").locator("+ dd")
    expect(session).to_have_text("1")
    bench.press("Control+z")
    bench.on_task(0)
    bench.press("6", "Control+Enter")
    bench.on_task(1)
    bench.delivered()
    until(lambda: Answer.objects.count() == 2)
    expect(session).to_have_text("1")
    bench.press("Control+z")
    bench.on_task(0)
    bench.press("Backspace", "ArrowDown", "Enter")
    bench.on_task(1)
    expect(session).to_have_text("0")


def test_a_task_is_skipped_with_a_reason_and_flagged(bench):
    bench.press("f")
    bench.type("The second response is cut off")
    bench.press("Control+Enter")
    expect(bench.page.locator("#toasts")).to_contain_text("The reviewers will see it")
    bench.press("Backspace")
    expect(bench.page.locator("#work-skip")).to_be_visible()
    bench.press("ArrowDown", "ArrowDown", "Enter")
    bench.on_task(1)
    bench.delivered()
    assert Comment.objects.get().text == "The second response is cut off"
    assert Assignment.objects.get(state="skipped").skip_reason.startswith("The text is broken")


def test_words_about_a_task_that_are_too_long_are_kept_whole_and_refused(bench):
    for key, place, most in (("f", "#work-flag", 4_000), ("Backspace", "#work-skip", 400)):
        bench.press(key)
        field = bench.page.locator(f"{place}-text")
        field.focus()
        bench.page.keyboard.insert_text("x" * (most + 1))  # as a browser pastes
        if place == "#work-skip":
            bench.page.locator(f"{place} input[type=radio]").first.check()
        bench.page.locator(f"{place} .btn.primary").click()
        expect(bench.page.locator(place)).to_be_visible()
        said = f"This text has {most + 1:,} characters. Shorten it to {most:,} or fewer."
        expect(field).to_have_js_property("validationMessage", said)
        expect(field).to_have_value("x" * (most + 1))
        if place == "#work-skip":
            bench.press("Escape")
            bench.press(key)
            expect(field).to_have_js_property("validationMessage", "")  # the next question begins empty
            bench.press("Escape")
        else:
            field.fill("short enough")
            bench.page.locator(f"{place} .btn.primary").click()
            expect(bench.page.locator(place)).to_be_hidden()
    bench.delivered()
    assert Comment.objects.get().text == "short enough"
    assert not Assignment.objects.filter(state="skipped").exists()


def test_a_late_answer_about_a_flag_leaves_the_next_flag_open(bench):
    """In an earlier version, the answer closed the dialog although another flag was being written by then."""
    held = []
    bench.page.route("**/flag", lambda route: held.append(route))
    bench.press("f")
    bench.type("The second response is cut off")
    bench.press("Control+Enter")
    until_held(bench, held, 1)
    expect(bench.page.locator("#work-flag .btn.primary")).to_have_attribute("aria-busy", "true")
    bench.press("Escape", "f")
    expect(bench.page.locator("#work-flag .btn.primary")).not_to_have_attribute("aria-busy", "true")
    bench.type("The first one as well")
    held[0].continue_()
    expect(bench.page.locator("#toasts")).to_contain_text("The reviewers will see it")
    expect(bench.page.locator("#work-flag-text")).to_have_value("The first one as well")
    expect(bench.page.locator("#work-flag")).to_be_visible()

    bench.press("Control+Enter")
    until_held(bench, held, 2)
    bench.press("Escape", "f")
    bench.type("A third")
    held[1].fulfill(status=409, json={"error": {"message": "The task was deleted."}})
    expect(bench.page.locator("#toasts")).to_contain_text("Flag this task: The task was deleted.")
    expect(bench.page.locator("#work-flag [data-problem]")).to_be_empty()
    expect(bench.page.locator("#work-flag-text")).to_have_value("A third")
    assert [each.text for each in Comment.objects.all()] == ["The second response is cut off"]


def until_held(bench: Bench, held: list, count: int) -> None:
    """Waits until `count` requests are held. Playwright notices them only while the page is asked for something."""
    deadline = time.monotonic() + SECONDS
    while len(held) < count and time.monotonic() < deadline:
        bench.page.wait_for_timeout(50)
    assert len(held) == count


def test_the_buttons_that_arrange_the_page_say_in_words_what_their_keys_do(bench):
    together = bench.page.get_by_role("button", name="Scroll together")
    beside = bench.page.get_by_role("button", name="Answer beside")
    expect(together).to_have_text("Scroll togetherS")
    expect(beside).to_have_text("Answer besideD")
    expect(together).to_have_attribute("aria-pressed", "true")
    bench.press("s", "d")
    expect(together).to_have_attribute("aria-pressed", "false")
    expect(beside).to_have_attribute("aria-pressed", "true")


def test_a_key_is_changed_on_the_sheet_and_shown_on_the_button(bench):
    bench.press("?")
    bench.page.get_by_role("button", name="Flag for the reviewers").click()
    bench.press("x")
    expect(bench.page.get_by_role("button", name="Flag for the reviewers: X")).to_be_visible()
    bench.press("Escape")
    expect(bench.page.locator("[data-do=flag] kbd")).to_have_text("X")
    bench.press("f")
    expect(bench.page.locator("#work-flag")).to_be_hidden()
    bench.press("x")
    expect(bench.page.locator("#work-flag")).to_be_visible()
    until(lambda: Participant.objects.get().keys == {"flag": "x"})


def test_a_late_report_of_closing_does_not_end_the_wait_for_a_key(bench):
    """The browser may report that the sheet was closed when it is open again. An earlier version then ignored the key."""
    bench.page.evaluate("""() => {
      const press = (key) => document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
      press("?");
      document.getElementById("work-keys").close();
      press("?");  // before the report, which is a task of its own
      document.querySelector("#work-keys [aria-label^='Flag for the reviewers']").click();
    }""")
    bench.page.evaluate(
        "() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"
    )  # the report has come
    bench.press("x")
    expect(bench.page.get_by_role("button", name="Flag for the reviewers: X")).to_be_visible()


def test_a_key_that_is_taken_is_said_in_sight_and_the_place_is_kept(bench):
    bench.page.set_viewport_size({"width": 1280, "height": 500})  # the sheet is longer than the window
    bench.press("?")
    skip = bench.page.get_by_role("button", name="Skip, with a reason")
    skip.press("Enter")
    bench.press("f")
    told = bench.page.locator("#work-keys [data-problem]")
    expect(told).to_have_text("F is “Flag for the reviewers” already. Give that one another key first.")
    assert told.bounding_box()["y"] < 500
    expect(skip).to_be_focused()
    skip.press("Enter")
    bench.press("Escape")
    expect(bench.page.locator("#work-keys")).to_be_visible()
    expect(skip).to_be_focused()


def test_keys_scroll_the_longer_response_by_most_of_its_height_if_both_scroll_together(open_page, as_annotator, team):
    texts = {"good": "A short line.\n\n" * 30, "bad": "One line of many.\n\n" * 300}
    responses = {"responses": [{"id": name, "text": text} for name, text in texts.items()]}
    page = Bench(open_page(as_annotator), make_project(team.owner, team.annotator, record=lambda _: responses)).page
    first, second = (page.locator(f".work-card[data-letter={letter}] .work-scroll") for letter in "AB")
    longer, shorter = (first, second) if letter_of("bad") == "A" else (second, first)
    expect(shorter).to_have_js_property("scrollTop", 0)
    page.keyboard.press("j")
    expect(longer).not_to_have_js_property("scrollTop", 0)
    moved, height = longer.evaluate("node => [node.scrollTop, node.clientHeight]")
    assert moved == pytest.approx(0.8 * height, abs=2)
    expect(shorter).not_to_have_js_property("scrollTop", 0)
    assert shorter.evaluate("node => node.scrollTop") < moved / 2


def test_a_task_sent_back_says_why(bench, project):
    Assignment.objects.update(sent_back="Look at the year again.")
    bench.page.reload()
    expect(bench.page.locator("[data-subject=sent_back]")).to_contain_text("Look at the year again.")


def test_a_seat_that_others_took_meanwhile_is_said_and_the_work_kept(bench, project):
    Assignment.objects.filter(task__rank=0).update(state="returned")
    project.tasks.filter(rank=0).update(taken=2)
    answer(bench, "2", "too late")
    expect(bench.page.locator("#toasts")).to_contain_text("Your time for this task ran out")
    bench.on_task(1)
    assert Assignment.objects.get(task__rank=0).draft["reasons"][0]["text"] == "too late"
    assert not Answer.objects.exists()


@pytest.mark.parametrize(
    "who, told", [("person", "You are paused in this project"), ("project", "This project is closed")]
)
def test_who_may_not_submit_any_more_is_given_no_further_task(bench, project, who, told):
    if who == "person":
        project.participants.update(paused=True)
    else:
        type(project).objects.filter(pk=project.pk).update(state="closed")
    answer(bench, "2", "what I had begun")
    expect(bench.page.get_by_role("heading", name=told)).to_be_visible()
    expect(bench.page.locator("#work-main")).to_contain_text("kept as a draft")
    assert Assignment.objects.get(task__rank=0).draft["reasons"][0]["text"] == "what I had begun"


def test_begun_tasks_stay_in_hand_when_a_person_comes_back_to_a_paused_project(bench, project):
    Project.objects.filter(pk=project.pk).update(state="paused")
    with bench.page.expect_response("**/claim"):
        bench.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    bench.press("ArrowRight")
    bench.on_task(1)


def test_the_number_of_tasks_left_is_that_of_home_and_falls_with_each_answer(open_page, as_annotator, team):
    project = make_project(team.owner, team.annotator, tasks=60)
    page = open_page(as_annotator)
    page.goto("/")
    expect(page.get_by_text("60 tasks wait")).to_be_visible()
    bench = Bench(page, project)
    count = page.locator("#work-count")
    expect(count).to_have_text("0 done · 60 left")
    for number in range(2):
        bench.on_task(number)
        bench.press("2", "Control+Enter")
    bench.on_task(2)
    bench.delivered()
    expect(count).to_have_text("2 done · 58 left")
    for again in (lambda: bench.press("Control+z"), page.reload):
        again()
        bench.on_task(1)
        expect(count).to_have_text("2 done · 58 left")  # an answer that is open again is not left as well
    bench.press("6", "Control+Enter")
    bench.on_task(2)
    bench.delivered()
    expect(count).to_have_text("2 done · 58 left")


def test_a_paused_project_does_not_say_that_nothing_is_left(bench, project):
    type(project).objects.filter(pk=project.pk).update(state="paused")
    bench.page.reload()
    expect(bench.page.get_by_role("heading", name="This project is paused")).to_be_visible()
    expect(bench.page.locator("#work-count")).to_have_text("0 done")


def sign_out(bench) -> list:
    """Removes the cookies, as if the session had ended. Returns the cookies that sign in again."""
    cookies = bench.page.context.cookies()
    bench.page.context.clear_cookies()
    return cookies


def test_who_is_signed_out_loses_nothing(bench):
    cookies = sign_out(bench)
    bench.press("2", "r")
    bench.type("written after the session ended")
    bench.says("Signed out, kept in this browser")
    bench.page.context.add_cookies(cookies)
    bench.page.get_by_role("button", name="Continue").click()
    bench.saved()
    expect(bench.reason(1)).to_have_value("written after the session ended")


def test_guidelines_that_changed_stay_until_the_person_has_signed_in_again(bench, project):
    Guidelines.objects.create(project=project, number=2, text="Prefer the *shorter* one.")
    panel = bench.page.locator("#work-guidelines")
    bench.page.evaluate("""async () => {
      const { Sidebar } = await import("/static/js/annotate/sidebar.js");
      const { project, user } = JSON.parse(document.getElementById("work-setup").textContent);
      window.told = 0;
      window.side = new Sidebar({ user, project, signedOut: () => (window.told += 1) });
    }""")
    cookies = sign_out(bench)
    assert bench.page.evaluate("window.side.guidelinesAre(2)") is False
    assert bench.page.evaluate("window.told") == 1
    expect(panel).to_contain_text("careful expert")  # neither nothing nor the page for signing in
    bench.page.context.add_cookies(cookies)
    twice = "Promise.all([window.side.guidelinesAre(2), window.side.guidelinesAre(2)])"
    assert bench.page.evaluate(twice) == [True, False]  # they are told of once
    expect(panel).to_contain_text("shorter")


def sign_in_elsewhere(bench, cookies) -> None:
    """Signs in as if in another tab. The session is the same in this test; the token of forms changes, as with each sign-in."""
    fresh = [{**each, "value": "n" * 32} if each["name"] == "csrftoken" else each for each in cookies]
    bench.page.context.add_cookies(fresh)
    bench.page.evaluate("dispatchEvent(new Event('focus'))")  # back in this tab


def test_who_signs_in_again_in_another_tab_goes_on_without_loading_the_page(bench):
    cookies = sign_out(bench)
    bench.press("2", "r")
    bench.type("still here")
    bench.says("Signed out, kept in this browser")
    sign_in_elsewhere(bench, cookies)
    bench.saved()
    expect(bench.page.get_by_text("You are signed out.")).to_have_count(0)
    expect(bench.reason(1)).to_have_value("still here")


def test_a_submission_that_waits_for_signing_in_says_so_and_goes_out_then(bench):
    cookies = sign_out(bench)
    answer(bench, "2", "clearer")
    bench.on_task(1)
    bench.says("Signed out; 1 submission waits to be sent")
    expect(bench.page.get_by_role("alert").filter(has_text="You are signed out.")).to_be_visible()
    sign_in_elsewhere(bench, cookies)
    bench.delivered()
    expect(bench.page.get_by_text("You are signed out.")).to_have_count(0)
    assert Answer.objects.get().content["reasons"][0]["text"] == "clearer"


def test_the_next_task_is_there_when_it_is_asked_for(bench):
    for number in range(4):
        bench.on_task(number)
        bench.press("2", "r")
        bench.type("clearer")
        bench.press("Control+Enter")
    bench.on_task(4)
    bench.delivered()
    # each is measured after the task is drawn; the benchmark reads these times
    bench.page.wait_for_function("performance.getEntriesByName('work:next').length === 4")


def test_a_gold_task_with_feedback_says_what_was_expected(open_page, as_annotator, team):
    project = make_project(team.owner, team.annotator, gold_feedback=True)
    project.tasks.filter(rank=0).update(gold={"verdict": "compared", "strength": -2}, overlap=None)
    project.tasks.filter(rank__gt=0).update(gold={"verdict": "compared", "strength": -2}, overlap=None)
    project.settings = {**project.settings, "gold_every": 1}
    project.save()
    bench = Bench(open_page(as_annotator), project)
    good = letter_of("good")
    bench.press("7" if good == "A" else "1", "Control+Enter")
    dialog = bench.page.locator("#work-check")
    expect(dialog).to_contain_text(f"Expected{good} better")
    bench.press("Enter")
    expect(dialog).to_be_hidden()
    bench.on_task(1)
    assert bench.choice() == ""
