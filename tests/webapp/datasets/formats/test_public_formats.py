"""Formats of which we have no files. The tests use our own rows in the form that the documentation describes."""

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils.html import escape

from trainer.contracts import Example
from webapp.datasets.formats import table
from webapp.datasets.formats.base_importer import Alone
from webapp.datasets.formats.convert import example
from webapp.datasets.formats.importers import REGISTRY, detect
from webapp.files.records import BadRow, FileHead, RowProblem

from . import traces

ASKED = [{"role": "user", "content": "Name a colour."}]


def turn(text):
    return [*ASKED, {"role": "assistant", "content": text}]


RUBRICBENCH = {
    "case_id": "chat-1",
    "instruction": "Name a colour in one word.",
    "response_a": "Red",
    "response_b": "A very nice colour is red.",
    "label": 0,
    "rubrics": '["Names a colour", "Is one word"]',
    "source": "ours",
    "domain": "Chat",
}
HELPSTEER3 = {
    "domain": "general",
    "language": "english",
    "context": ASKED,
    "response1": "Red.",
    "response2": "Blue, like the sea.",
    "overall_preference": 1,
    "individual_preference": [
        {"score": 2, "reasoning": "Response 2 is vivid.", "feedback1": "Bare.", "feedback2": "Vivid."},
        {"score": -1, "reasoning": "Response 1 is to the point.", "feedback1": "", "feedback2": None},
    ],
}
ULTRAFEEDBACK = {
    "source": "sharegpt",
    "instruction": "Name a colour.",
    "models": ["m1", "m2", "m3"],
    "completions": [
        {
            "model": "m1",
            "response": "Red",
            "overall_score": 6.0,
            "annotations": {
                "helpfulness": {"Rating": "4", "Rationale": "Fine", "Type": None, "Rationale For Rating": None},
                "honesty": {"Rating": "N/A", "Rationale": "Nothing to judge"},
            },
        },
        {"model": "m2", "response": "Blue", "overall_score": 8.5, "annotations": {}},
        {"model": "m3", "response": "Grey", "overall_score": 6.0, "annotations": {}},
    ],
    "correct_answers": ["None"],
    "incorrect_answers": ["None"],
}
BINARISED = {
    "prompt": "Name a colour.",
    "prompt_id": "p1",
    "chosen": turn("Blue"),
    "rejected": turn("Red"),
    "messages": turn("Blue"),
    "score_chosen": 8.0,
    "score_rejected": 6.0,
}
REWARDBENCH = {
    "prompt": "Name a colour.",
    "chosen": "Red",
    "chosen_model": "m1",
    "rejected": "Tree",
    "rejected_model": "m2",
    "subset": "alpacaeval-easy",
    "id": 7,
}
REWARDBENCH_2 = {
    "id": "factuality-7",
    "prompt": "Name a colour.",
    "chosen": ["Red"],
    "rejected": ["Tree", "House", "Song"],
    "num_correct": 1,
    "num_incorrect": 3,
    "total_completions": 4,
    "models": ["m1", "m2", "m3", "m4"],
    "subset": "Factuality",
    "additional_metadata": None,
}
RM_BENCH = {
    "id": "chat/1",
    "prompt": "Name a colour.",
    "chosen": ["Red", "Red is a colour", "**Red**"],
    "rejected": ["Tree", "Tree is a colour", "**Tree**"],
    "domain": "chat",
}
MESSAGES = {"messages": turn("Red")}
COMPLETION = {"prompt": ASKED, "completion": [{"role": "assistant", "content": "Red"}]}
UNPAIRED = {"prompt": "Name a colour.", "completion": "Tree", "label": False}
STEPS = {"prompt": "What is 1 + 1?", "completions": ["1 + 1 = 2", "So it is 3"], "labels": [True, False]}
PROMPT_ONLY = {"prompt": ASKED}
LABEL_STUDIO = {
    "id": 5,
    "data": {"prompt": "Name a colour.", "answer1": "Red", "answer2": "Tree"},
    "annotations": [
        {
            "id": 1,
            "completed_by": {"id": 3, "email": "ada@example.org"},
            "was_cancelled": False,
            "lead_time": 4.2,
            "result": [
                {"from_name": "pw", "to_name": "a1,a2", "type": "pairwise", "value": {"selected": "left"}},
                {"from_name": "why", "to_name": "a1", "type": "textarea", "value": {"text": ["A tree is no colour."]}},
                {"from_name": "stars", "to_name": "a1", "type": "rating", "value": {"rating": 4}},
            ],
        },
        {"id": 2, "completed_by": 4, "was_cancelled": True, "result": []},
    ],
    "predictions": [],
}
ARGILLA = {
    "id": "r1",
    "status": "completed",
    "fields": {"instruction": "Name a colour.", "response_a": "Red", "response_b": "Tree"},
    "metadata": {"batch": 2},
    "suggestions": {"preference": {"value": "response_b", "agent": "m1", "score": 0.4}},
    "responses": {
        "preference": [
            {"value": "response_a", "user_id": "u1", "status": "submitted"},
            {"value": "response_b", "user_id": "u2", "status": "draft"},
        ],
        "why": [{"value": "A tree is no colour.", "user_id": "u1", "status": "submitted"}],
    },
    "vectors": {},
}
ARGILLA_FLAT = {
    "id": "r1",
    "status": "completed",
    "_server_id": "x",
    "instruction": "Name a colour.",
    "response_a": "Red",
    "response_b": "Tree",
    "preference.responses": ["response_a", "response_b"],
    "preference.responses.users": ["u1", "u2"],
    "preference.responses.status": ["submitted", "draft"],
    "preference.suggestion": "response_b",
}
ARGILLA_1 = {
    "instruction": "Name a colour.",
    "response-1": "Red",
    "response-2": "Tree",
    "choice": [{"user_id": "u1", "value": "response-1", "status": "submitted"}],
    "choice-suggestion": None,
    "metadata": "{}",
    "external_id": "e9",
}
POTATO = {
    "id": "i1",
    "user": "ada",
    "displayed_text": ["Red", "Tree"],
    "label_annotations": {"better": {"A": "true"}, "why": {"text_box": "A tree is no colour."}},
    "span_annotations": [],
}

COLOUR = [{"role": "user", "content": "Name a colour."}]
RUBRIC_TEXT = json.dumps({"criteria": [{"id": "c1", "text": "Names a colour", "points": 2}]})
VERL = {
    "data_source": "colours",
    "prompt": COLOUR,
    "ability": "art",
    "reward_model": {"style": "rule", "ground_truth": "Red"},
    "extra_info": {"index": 7, "split": "train", "level": 3},
}
OPENRLHF = {"input": COLOUR, "label": RUBRIC_TEXT}
TRL_RL = {"prompt": COLOUR, "rubric": RUBRIC_TEXT, "reference": "Red"}

ROWS: dict[str, Any] = {
    "rubricbench": [RUBRICBENCH],
    "helpsteer3": [HELPSTEER3],
    "ultrafeedback": [ULTRAFEEDBACK, BINARISED],
    "rewardbench": [REWARDBENCH, REWARDBENCH_2],
    "rm_bench": [RM_BENCH],
    "trl_conversation": [MESSAGES, COMPLETION, UNPAIRED, STEPS, PROMPT_ONLY],
    "trl_preference": [
        {"prompt": "Name a colour.", "chosen": "Red", "rejected": "Tree"},
        {"chosen": turn("Red"), "rejected": turn("Tree")},
    ],
    "rl_prompts": [VERL, OPENRLHF, TRL_RL],
    "label_studio": [LABEL_STUDIO],
    "argilla": [ARGILLA, ARGILLA_FLAT, ARGILLA_1],
    "potato": [POTATO],
    **traces.ROWS,
}


def read(row, name=None) -> Example:
    importer = REGISTRY[name] if name else detect(FileHead("file.jsonl", (row,)))
    found = example(importer.label, importer.converter(Alone("file.jsonl")), 1, row, {})
    assert isinstance(found, Example), found
    return found


def problem(row, name) -> RowProblem:
    found = example("x", REGISTRY[name].converter(Alone("file.jsonl")), 1, row, {})
    assert isinstance(found, RowProblem)
    return found


@pytest.mark.parametrize(("name", "row"), [(name, row) for name, rows in ROWS.items() for row in rows])
def test_a_row_is_recognised_and_read(name, row):
    head = FileHead("file.jsonl", (row,))
    best, second, *_ = sorted((importer.sniff(head) for importer in REGISTRY.values()), reverse=True)
    assert detect(head).name == name
    assert best >= second + 0.05
    assert read(row).prompt


@pytest.mark.parametrize(("name", "row"), [(name, row) for name, rows in ROWS.items() for row in rows])
def test_the_page_shows_the_row_as_the_product_will(as_researcher, name, row):
    upload = SimpleUploadedFile("file.jsonl", json.dumps(row).encode())
    page = as_researcher.post("/datasets/import/preview", {"file": upload, "format": "auto"}).content.decode()
    assert escape(REGISTRY[name].label) in page and "1 of the first 1 row" in page
    found = read(row)
    assert all(escape(response.text) in page for response in found.responses[:1])
    assert page.count("by ada") == sum(each.rater.startswith("ada") for each in found.preferences)


def strengths(found: Example):
    return [(each.a, each.b, each.strength, each.rater) for each in found.preferences]


def test_rubricbench_label_is_the_place_of_the_better_response():
    found = read(RUBRICBENCH)
    assert strengths(found) == [("a", "b", -2, "gold")]
    assert strengths(read({**RUBRICBENCH, "label": 1}))[0][2] == 2
    assert found.meta["label"] == 0
    assert [criterion.text for criterion in found.rubric.criteria] == ["Names a colour", "Is one word"]


@pytest.mark.parametrize(
    ("found", "domain"), [("precise IF", "IF"), ("mmlu-pro", "STEM"), ("human-preference", "Chat"), ("mbpp", "Coding")]
)
def test_rubricbench_pairs_are_in_the_five_domains_of_the_paper(found, domain):
    example = read({**RUBRICBENCH, "domain": found})
    assert (example.domain, example.meta["subdomain"]) == (domain, found)
    again = read({**RUBRICBENCH, "domain": domain, "subdomain": found})  # as the export writes it
    assert (again.domain, again.meta["subdomain"]) == (domain, found)


def test_a_rubricbench_domain_of_ones_own_stays():
    example = read({**RUBRICBENCH, "domain": "Cooking"})
    assert example.domain == "Cooking" and "subdomain" not in example.meta


@pytest.mark.parametrize(
    "rubrics", ["1. Names a colour\n2. Is one word", ["Names a colour", {"criterion": "Is one word"}]]
)
def test_rubricbench_items_come_as_lines_or_lists(rubrics):
    found = read({**RUBRICBENCH, "rubrics": rubrics})
    assert [criterion.text for criterion in found.rubric.criteria] == ["Names a colour", "Is one word"]


def test_helpsteer3_keeps_each_annotator_with_reasons():
    found = read(HELPSTEER3)
    assert strengths(found) == [("a", "b", 2, "annotator 1"), ("a", "b", -1, "annotator 2")]
    assert [(r.text, r.response) for r in found.preferences[0].reasons] == [
        ("Response 2 is vivid.", None),
        ("Bare.", "a"),
        ("Vivid.", "b"),
    ]
    assert found.meta["overall_preference"] == 1


def test_a_number_that_no_reader_can_compute_with_refuses_its_row():
    given = {"response": "Red", "annotations": {"helpfulness": {"Rating": 10**400}}}
    assert "too large" in problem(ULTRAFEEDBACK | {"completions": [given]}, "ultrafeedback").reason


def test_ultrafeedback_orders_by_overall_score_and_leaves_out_what_is_not_applicable():
    found = read(ULTRAFEEDBACK)
    assert strengths(found) == [("r2", "r1", -2, "gpt-4"), ("r1", "r3", 0, "gpt-4")]
    assert found.meta["ratings"] == [
        {"response": "r1", "scale": "helpfulness", "rater": "gpt-4", "score": 4, "feedback": "Fine"}
    ]
    assert strengths(read(BINARISED)) == [("a", "b", -2, "")]
    assert [rating["score"] for rating in read(BINARISED).meta["ratings"]] == [8.0, 6.0]
    assert strengths(read({**BINARISED, "score_rejected": 8.0}))[0][2] == 0


def test_rewardbench_2_compares_every_right_answer_with_every_wrong_one():
    assert [(a, b) for a, b, *_ in strengths(read(REWARDBENCH_2))] == [("right1", f"wrong{i}") for i in (1, 2, 3)]
    assert [each.origin for each in read(REWARDBENCH_2).responses] == ["m1", "m2", "m3", "m4"]
    assert read(REWARDBENCH).key == "alpacaeval-easy-7"
    ties = {**REWARDBENCH_2, "id": "tied:3", "subset": "Ties", "chosen": ["Red", "Blue"], "num_correct": 2}
    assert (read(ties).key, read(ties).domain, len(read(ties).preferences)) == ("Ties-tied:3", "Ties", 6)


def test_rm_bench_compares_all_styles():
    found = read(RM_BENCH)
    assert len(found.responses) == 6 and len(found.preferences) == 9
    assert found.responses[2].tags == ("style:detailed_markdown",)
    assert read({**RM_BENCH, "id": 0, "domain": "math"}).key == "math-0"


def test_prompts_with_a_reward_have_a_rubric_or_a_reference():
    verl, openrlhf, trl = map(read, (VERL, OPENRLHF, TRL_RL))
    assert (verl.key, verl.source, verl.domain, verl.reference, verl.split) == (
        "train-7",
        "colours",
        "art",
        "Red",
        "train",
    )
    assert verl.meta == {"extra_info": {"level": 3}} and verl.rubric is None
    assert read({**VERL, "extra_info": {"index": 7, "split": "test"}}).key == "test-7"  # verl counts each split from 0
    assert [read({**VERL, "extra_info": {"index": index}}).key for index in (0, "demo-7")] == ["0", "demo-7"]
    assert (
        read({**VERL, "extra_info": {"index": "demo-7", "split": "train"}}).key == "demo-7"
    )  # as our export writes it
    assert openrlhf.rubric == trl.rubric and openrlhf.rubric.criteria[0].points == 2
    assert (openrlhf.reference, trl.reference) == (None, "Red")
    assert read({**OPENRLHF, "label": 12}).reference == "12"
    assert read({**OPENRLHF, "label": "{not json"}).reference == "{not json"


def test_trl_conversations_end_in_the_answer():
    for row in (MESSAGES, COMPLETION):
        found = read(row)
        assert [m.content for m in found.prompt] == ["Name a colour."] and found.responses[0].text == "Red"
    assert read(UNPAIRED).meta["label"] is False
    assert [step["right"] for step in read(STEPS).meta["steps"]] == [True, False]
    assert not read(PROMPT_ONLY).responses


@pytest.mark.parametrize(
    ("row", "rater"),
    [(LABEL_STUDIO, "ada@example.org"), (ARGILLA, "u1"), (ARGILLA_FLAT, "u1"), (ARGILLA_1, "u1"), (POTATO, "ada")],
)
def test_an_export_gives_the_preference_of_whoever_submitted_one(row, rater):
    found = read(row)
    assert strengths(found) == [("a", "b", -2, rater)]
    assert [each.text for each in found.responses] == ["Red", "Tree"]
    if row not in (ARGILLA_FLAT, ARGILLA_1):
        assert [reason.text for reason in found.preferences[0].reasons] == ["A tree is no colour."]


def test_an_export_loses_no_answer():
    found = read(LABEL_STUDIO)
    assert [(a["question"], a["value"]) for a in found.meta["answers"]] == [
        ("pw", "left"),
        ("why", "A tree is no colour."),
        ("stars", 4),
    ]
    assert found.meta["ratings"] == [{"scale": "stars", "rater": "ada@example.org", "score": 4}]
    assert found.meta["skipped_by"] == ["4"]


@pytest.mark.parametrize(
    ("value", "meaning"),
    [
        ("A", {"strength": -2}),
        ("right", {"strength": 2}),
        ("Response 2 is much better", {"strength": 3}),
        ("A is slightly better", {"strength": -1}),
        ("Tie", {"strength": 0}),
        ("both are bad", {"verdict": "both_bad"}),
        ("A or B", None),
        ("the sky is blue today", None),
        ("maybe A", None),
        ("a bit better", None),
        ("B is a bit better", {"strength": 1}),
        ("2", {"strength": 2}),
        (1, None),
    ],
)
def test_an_answer_that_is_not_plain_is_not_guessed(value, meaning):
    from webapp.datasets.formats.annotation_tools import verdict

    assert verdict(value, ("answer1", "answer2")) == meaning


def test_a_rating_that_a_tool_writes_as_text_names_no_side(import_rows):
    header = "annotation_id,annotator,choice,id,prompt,quality,text_a,text_b\n"
    shown = "Which city is the capital?", "It is Paris of course.", "The capital is Paris."
    rows = [
        f"{n},{rater},B,7,{shown[0]},{quality},{shown[1]},{shown[2]}\n" for n, rater, quality in ((1, 1, 1), (2, 2, 4))
    ]
    label_studio = import_rows(header + "".join(rows), name="rated", file_name="rated.csv")
    assert [each["strength"] for each in label_studio.version.members.get().example.content["preferences"]] == [2, 2]
    likert = {
        "id": "i",
        "displayed_text": list(shown[1:]),
        "user": "ada",
        "label_annotations": {"quality": {"1": "true"}},
    }
    potato = import_rows([likert], name="scaled").version.members.get().example.content
    assert "preferences" not in potato and potato["meta"]["answers"][0]["value"] == "1"


def test_rows_of_several_annotators_become_one_example(import_rows):
    header = "user,instance_id,displayed_text,better:::A,better:::B\n"
    job = import_rows(header + "ada,i1,Which is a colour?,1,\nben,i1,Which is a colour?,,1\n", file_name="out.csv")
    assert job.format == "potato" and job.counts["examples"] == 1, job.rejected
    content = job.version.members.get().example.content
    assert [(a["rater"], a["value"]) for a in content["meta"]["answers"]] == [("ada", "A"), ("ben", "B")]


def test_label_studio_rows_of_single_annotations_are_joined_by_task(import_rows):
    rows = [
        {
            "id": 1,
            "annotator": who,
            "annotation_id": n,
            "lead_time": 3,
            "text1": "Red is one",
            "text2": "A tree is",
            "pw": side,
        }
        for n, (who, side) in enumerate([("ada", "left"), ("ben", "right")])
    ]
    job = import_rows(rows)
    assert job.format == "label_studio" and job.counts == {**job.counts, "examples": 1, "preferences": 2}


@pytest.mark.parametrize(
    ("name", "row", "field"),
    [
        ("rubricbench", {**RUBRICBENCH, "label": 7}, "label"),
        ("rubricbench", {**RUBRICBENCH, "rubrics": None}, "rubrics"),
        ("helpsteer3", {**HELPSTEER3, "overall_preference": 4}, "overall_preference"),
        ("helpsteer3", {**HELPSTEER3, "individual_preference": [{"score": None}]}, "individual_preference.0.score"),
        ("ultrafeedback", {**ULTRAFEEDBACK, "completions": []}, "completions"),
        ("rewardbench", {**REWARDBENCH, "id": None}, "id"),
        ("rewardbench", {**REWARDBENCH, "rejected": "Red"}, "rejected"),
        ("rm_bench", {**RM_BENCH, "chosen": ["Red"]}, "chosen"),
        ("rubricbench", {**RUBRICBENCH, "label": 2}, "label"),
        ("trl_conversation", {**UNPAIRED, "label": "no"}, "label"),
        ("trl_conversation", {**STEPS, "labels": [True]}, "labels"),
        ("label_studio", {**LABEL_STUDIO, "data": {}}, ""),
        ("argilla", {**ARGILLA_FLAT, "preference.responses.users": ["u1"]}, "preference.responses"),
    ],
)
def test_what_is_wrong_is_named_at_its_field(name, row, field):
    assert problem(row, name).field == field


@pytest.mark.parametrize("column", ["response", "responses", "completions"])
def test_a_table_has_many_responses_as_texts_or_as_objects(column):
    told: list[Any] = [{"id": "a", "text": "First.", "model": "m1"}, {"text": "Second.", "score": 3}, "Third."]
    row = {"id": "q1", "prompt": "Which?", column: told}
    made = Example.model_validate(table.convert(row, {}))
    assert [(each.id, each.text, each.origin) for each in made.responses] == [
        ("a", "First.", "m1"),
        ("r2", "Second.", ""),
        ("r3", "Third.", ""),
    ]
    assert made.meta == {column: told}, "the score has no field of its own"
    del told[1]["score"]
    assert table.convert(row, {})["meta"] == {}


def test_a_tables_response_without_a_text_is_refused_with_what_is_expected():
    with pytest.raises(BadRow, match="an object with its text as `text`"):
        table.convert({"prompt": "Which?", "responses": [{"content": "First."}]}, {})


@pytest.mark.parametrize(
    ("said", "judged"),
    [
        (1, {"strength": -2}),
        ("2.0", {"strength": 2}),
        ("1.0", {"strength": -2}),
        ("3", None),
        (True, None),
        (2.0, {"strength": 2}),
        ("model_b", {"strength": 2}),
        ("Answer_1", {"strength": -2}),
        ("tie", {"strength": 0}),
        ("tie (bothbad)", {"verdict": "both_bad"}),
        (0, None),
    ],
)
def test_a_table_says_in_a_column_which_of_two_responses_is_better(said, judged):
    row = {
        "id": "q1",
        "prompt": "Which?",
        "answer_1": "First.",
        "answer_2": "Second.",
        "winner": said,
        "language": "en",
    }
    named = {
        "key": "id",
        "prompt": "prompt",
        "response_a": "answer_1",
        "response_b": "answer_2",
        "preference": "winner",
    }
    if judged is None:
        with pytest.raises(BadRow, match="a or b, 1 or 2, or tie"):
            table.convert(row, named)
        return
    assert table.guess(FileHead("", (row,))) == named
    made = Example.model_validate(table.convert(row, named))
    assert [(each.id, each.text) for each in made.responses] == [("a", "First."), ("b", "Second.")]
    assert [each.model_dump(exclude_defaults=True) for each in made.preferences] == [{"a": "a", "b": "b", **judged}]
    assert made.meta == {"language": "en"}


def test_a_table_with_two_responses_and_no_judgement_is_a_pair_to_be_judged():
    made = Example.model_validate(
        table.convert({"prompt": "Which?", "response_a": "First.", "response_b": "Second."}, {})
    )
    assert len(made.responses) == 2 and not made.preferences
    with pytest.raises(BadRow, match="needs both responses"):
        table.convert({"prompt": "Which?", "response_a": "First.", "response_b": ""}, {})


def test_columns_with_the_better_and_the_worse_response_come_before_two_numbered_ones():
    row = {"prompt": "Which?", "chosen": "Good.", "rejected": "Bad.", "response_1": "Bad.", "response_2": "Good."}
    made = Example.model_validate(table.convert(row, {}))
    assert made.responses[0].text == "Good." and made.meta == {"response_1": "Bad.", "response_2": "Good."}
    both = {
        "prompt": "prompt",
        "chosen": "chosen",
        "rejected": "rejected",
        "response_a": "response_1",
        "response_b": "response_2",
    }
    with pytest.raises(BadRow, match="one of the two pairs"):
        table.convert(row, both)


@pytest.mark.parametrize("names", [("response_a", "response_b"), ("chosen", "rejected")])
def test_responses_of_a_pair_may_be_json_as_text(names):
    texts = ['{"answer": true}', "[1, 2]"]
    made = Example.model_validate(table.convert({"prompt": "Which?", **dict(zip(names, texts, strict=True))}, {}))
    assert [each.text for each in made.responses] == texts


@pytest.mark.parametrize("names", [("response_a", "response_b"), ("chosen", "rejected")])
@pytest.mark.parametrize("place", [0, 1])
def test_a_response_of_a_pair_that_is_a_conversation_as_text_is_refused(names, place):
    row = {"prompt": "Which?", **dict.fromkeys(names, "Yes.")}
    row[names[place]] = json.dumps([{"role": "assistant", "content": "No."}])
    with pytest.raises(BadRow, match=f"{names[place]}: must be the text of one response, found messages as JSON"):
        table.convert(row, {})


@pytest.mark.parametrize(("first", "second"), [("response_a", "response_b"), ("chosen", "rejected")])
def test_a_response_of_a_pair_that_is_a_list_of_messages_is_refused_as_such(first, second):
    said = [{"role": "assistant", "content": "No."}]
    with pytest.raises(BadRow) as refused:
        table.convert({"q": "Which?", "good": said, "bad": said}, {"prompt": "q", first: "good", second: "bad"})
    assert "must be the text of one response, found a list of messages" in refused.value.reason
    assert refused.value.field == "good" and ("trl_preference" in refused.value.reason) == (first == "chosen")
    named = {"prompt": "Which?", "chosen": said, "rejected": [{"role": "assistant", "content": "Yes."}]}
    assert read(named, "trl_preference").responses[0].text == "No."


@pytest.mark.parametrize("names", [("prompt", "response_a", "response_b"), ("prompt", "chosen", "rejected")])
def test_of_several_missing_columns_the_first_is_named(names):
    """In the order of the fields: key, prompt, the better or first response, the worse or second one."""
    mapping = {field: f"{field}'s" for field in (*reversed(names), "key")}
    for number, lacking in enumerate(order := ["key", *names]):
        row = {mapping[field]: "x" for field in order[:number]}
        with pytest.raises(BadRow, match="no such column") as refused:
            table.convert(row, mapping)
        assert refused.value.field == mapping[lacking]
    texts = dict.fromkeys(names, json.dumps([{"role": "assistant", "content": "No."}]))
    with pytest.raises(BadRow) as refused:
        table.convert(texts, {name: name for name in reversed(names)})
    assert refused.value.field == names[1]


def test_a_response_beside_a_better_and_a_worse_one_is_kept():
    row = {"prompt": "Which?", "response": "Other.", "chosen": "Good.", "rejected": "Bad."}
    made = Example.model_validate(table.convert(row, {}))
    assert [each.text for each in made.responses] == ["Good.", "Bad."] and made.meta == {"response": "Other."}


def test_a_reference_is_kept_as_it_was_written():
    for written, kept in (('{"a": true}', '{"a": true}'), ({"ä": [1, True]}, '{"ä": [1, true]}'), (3, "3")):
        assert table.convert({"prompt": "Which?", "reference": written}, {})["reference"] == kept


PAIR = {"prompt": "prompt", "response_a": "response_a", "response_b": "response_b"}
LETTERS = {"prompt": "Which?", "response_a": "First.", "response_b": "Second."}


@pytest.mark.parametrize("one", [1, "1", 1.0, 2])
def test_a_number_names_no_response_of_columns_that_are_not_numbered(one):
    """RubricBench counts from 0, and on our own scale 1 is slightly better for b: a 1 is never simply the first response."""
    with pytest.raises(BadRow, match="which response is better: a or b, or tie"):
        table.convert(LETTERS | {"label": one}, PAIR | {"preference": "label"})


@pytest.mark.parametrize("values", [(1, 0, 1), ("1", "0"), (-3, 1), (2, 3), (0.5, 1), (True, False)])
@pytest.mark.parametrize(("first", "second"), [("response_a", "response_b"), ("response_1", "response_2")])
def test_a_column_of_scores_or_of_places_from_zero_is_not_taken_for_the_better_response(values, first, second):
    rows = tuple({"prompt": "Which?", first: "First.", second: "Second.", "preference": value} for value in values)
    assert table.guess(FileHead("", rows)) == {"prompt": "prompt", "response_a": first, "response_b": second}


@pytest.mark.parametrize("values", [(1, 2), ("1", "", "2.0"), (2,)])
@pytest.mark.parametrize("name", ["preference", "winner"])
def test_numbers_say_which_is_better_only_beside_columns_that_are_numbered(values, name):
    rows = tuple(LETTERS | {name: value} for value in values)
    assert table.guess(FileHead("", rows)) == PAIR
    made = Example.model_validate(table.convert(rows[0], {}))
    assert not made.preferences and made.meta == {name: values[0]}
    numbered = tuple({"prompt": "Which?", "response_1": "a", "response_2": "b", name: value} for value in values)
    assert table.guess(FileHead("", numbered))["preference"] == name
    assert table.guess(FileHead("", (*rows, LETTERS | {name: "a"})))["preference"] == name


@pytest.mark.parametrize("said", ["nan", "inf", "-Infinity"])
def test_a_text_that_is_no_finite_number_refuses_only_its_row(said):
    mapping = {"prompt": "prompt", "response_a": "response_1", "response_b": "response_2", "preference": "preference"}
    with pytest.raises(BadRow, match="which response is better: a or b, 1 or 2, or tie") as refused:
        table.convert({"prompt": "Which?", "response_1": "a", "response_2": "b", "preference": said}, mapping)
    assert not refused.value.doubts_all


@pytest.mark.parametrize("beside", [{}, {"preference": 0.3}, {"preferred": 0.3}])
def test_the_first_column_that_may_name_the_better_response_is_taken(beside):
    """A score beside the column that names the better response, or a column of other numbers alone, refuses no file."""
    named = table.guess(FileHead("", (LETTERS | beside | {"winner": "response_b"},)))
    assert named == PAIR | {"preference": "winner"}
    row = LETTERS | beside | {"winner": 0}
    assert table.guess(FileHead("", (row,))) == PAIR
    made = Example.model_validate(table.convert(row, {}))
    assert not made.preferences and made.meta == beside | {"winner": 0}


def test_a_label_is_not_taken_for_the_better_response():
    assert table.guess(FileHead("", (LETTERS | {"label": "politics"},))) == PAIR


@pytest.mark.parametrize("said", ["A", "response_b", "tie"])
def test_chosen_beside_two_responses_may_name_the_better_one(said):
    row = LETTERS | {"chosen": said}
    mapping = table.guess(FileHead("", (row,)))
    assert mapping == PAIR | {"preference": "chosen"}
    assert table.convert(row, mapping)["preferences"][0]["strength"] == {"A": -2, "response_b": 2, "tie": 0}[said]


@pytest.mark.parametrize("said", ["First.", 0])
def test_chosen_beside_two_responses_that_names_neither_is_refused(said):
    with pytest.raises(BadRow):
        table.convert(LETTERS | {"chosen": said}, {})


@pytest.mark.parametrize(
    ("mapping", "field"),
    [
        (PAIR | {"response": "other"}, "response"),
        ({"prompt": "prompt", "preference": "other"}, "preference"),
        ({"prompt": "prompt", "response_a": "response_a", "preference": "other"}, "preference"),
        ({"prompt": "prompt", "chosen": "response_a", "rejected": "response_b", "preference": "other"}, "preference"),
    ],
)
def test_a_mapped_column_that_nothing_would_read_is_refused_at_its_field(mapping, field):
    with pytest.raises(BadRow) as refused:
        table.convert(LETTERS | {"other": "a"}, mapping)
    assert refused.value.field == field


@pytest.mark.parametrize("first", ["response_b", "answer_B"])
@pytest.mark.parametrize("said", ["column", "a", "model_a"])
def test_columns_that_are_mapped_the_other_way_round_keep_their_names(first, said):
    second = first[:-1] + {"b": "a", "B": "A"}[first[-1]]
    crossed = {"prompt": "prompt", "response_a": first, "response_b": second, "preference": "winner"}
    row = {"prompt": "Which?", second: "File's a.", first: "File's b.", "winner": second if said == "column" else said}
    made = table.convert(row, crossed)
    assert made["responses"][1]["text"] == "File's a." and made["preferences"][0]["strength"] == 2
    other = row["winner"][:-1] + {"a": "b", "A": "B"}[row["winner"][-1]]
    assert table.convert(row | {"winner": other}, crossed)["preferences"][0]["strength"] == -2


def test_a_name_that_fits_both_columns_is_refused():
    row = {"prompt": "Which?", "Answer": "First.", "answer": "Second.", "winner": "answer"}
    mapping = {"prompt": "prompt", "response_a": "Answer", "response_b": "answer", "preference": "winner"}
    with pytest.raises(BadRow, match="names the columns of both"):
        table.convert(row, mapping)


def test_two_equal_responses_of_which_one_is_better_are_refused():
    same = LETTERS | {"response_b": "First."}
    with pytest.raises(BadRow, match="response_b: is the same text as response_a"):
        table.convert(same | {"preference": "a"}, {})
    assert table.convert(same | {"preference": "tie"}, {})["preferences"][0]["strength"] == 0
