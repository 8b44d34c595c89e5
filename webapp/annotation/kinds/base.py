"""The base of a kind of task, which is a module of this folder with a `KIND`. All other code asks the kind and knows none by name.

Pure functions of an example's content, a subject and answers as they are stored (the subject's frame), except for the pieces of SQL that
count the answers of a whole project.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from statistics import mean
from typing import TYPE_CHECKING, Any, ClassVar

from trainer.contracts.plurals import with_noun

from .fields import Field
from .records import Answered, Settings
from .table import AnswerRow, GivenAnswer, item_rows

if TYPE_CHECKING:
    from webapp.datasets.models import DatasetVersion

Content = Mapping[str, Any]
Subject = dict[str, Any]
Groups = Sequence[Sequence[tuple[int, int]]]  # of (index of the answer, index of the item in it)
Problems = dict[str, str]  # {path below `content`: sentence}


class TaskKind(ABC):
    """A kind of task. `needs` names the counts that a version must have for tasks of this kind to exist."""

    name: ClassVar[str]  # as stored, in addresses, and of its module in static/js/annotate/kinds
    place: ClassVar[int]  # position among the kinds in the gallery
    title: ClassVar[str]
    text: ClassVar[str]
    unit: ClassVar[str]  # what one task is about, in words
    needs: ClassVar[tuple[str, ...]]
    picture: ClassVar[str]  # shapes of an SVG of 64 x 44, in currentColor
    answer: ClassVar[type[Answered]]
    heading: ClassVar[str] = "Judgement"  # of a reviewer's rows
    template: ClassVar[str] = "annotation/answers/facts.html"  # draws an answer on a project's pages

    compares: ClassVar[bool] = False  # answers become comparisons of two responses
    items_name: ClassVar[str] = ""  # the items that are matched by meaning: "criteria", "reasons"
    by_meaning: ClassVar[bool] = False  # the answer is only items: agreement and gold wait for the match
    labelled: ClassVar[bool] = False  # the data may bring known answers: see `from_labels`
    suggested: ClassVar[bool] = False  # a judge can be asked for an answer
    only_noted: ClassVar[bool] = False  # an example has no field for the judgement: it goes only to `meta.annotation`
    writes_rubric: ClassVar[bool] = False  # the resolved answer becomes the rubric of the example
    responses_after: ClassVar[bool] = False  # responses and reference are hidden until the person has answered
    by_rubric: ClassVar[bool] = False  # people judge by the example's rubric
    units_sql: ClassVar[str] = ""  # joins (unit, value) of answer `a`: values that people can share; "": nothing

    def problem(self, version: "DatasetVersion") -> str:
        """The reason why no task can be made of this version; empty if tasks can be made."""
        missing = [count for count in self.needs if not version.counts.get(count)]
        return f"{version} has no {' and no '.join(missing)}, which {self.title.lower()} needs" if missing else ""

    def problems(self, settings: Settings) -> Problems:
        """Problems of the settings of a project of this kind, by their names."""
        return {}

    # ---- the task ----

    @abstractmethod
    def subjects(self, content: Content) -> list[Subject]:
        """The subjects to judge in an example; [] if it has none of this kind."""

    def criteria(self, subject: Content, content: Content) -> list[dict[str, Any]]:
        """The criteria by which the person judges."""
        return []

    def rationale(self, subject: Content, content: Content) -> str | None:
        """A text that the person works on, if the example has one."""
        return None

    def material(self, subject: Content, content: Content) -> dict[str, Any]:
        """Data that only the kind's own widget draws. Nothing in it may name a response, a model or a person."""
        return {}

    def view_of_example(self, subject: Content, content: Content) -> dict[str, Any] | None:
        """A suggested answer, made of the example's content; `meta.suggestions` takes precedence."""
        return None

    # ---- the answer ----

    def check(self, record: Any, settings: Settings, view: Content, *, gold: bool) -> Problems:
        """Problems of an answer whose form is right. `view` is what the person saw; `record` is of type `answer`."""
        return {}

    def completed(self, content: dict[str, Any], view: Content) -> dict[str, Any]:
        """The answer, with values that the server knows better."""
        return content

    def renamed(self, content: dict[str, Any], name: Callable[[str], str], *, swapped: bool) -> dict[str, Any]:
        """The answer in the other frame: `name` gives a response's other name (ValueError: none), `swapped` says that the two sides of a
        pair changed places."""
        return dict(content)

    @abstractmethod
    def says(self, content: Content) -> str:
        """An answer in a few words, for lists; sides are named by letters or ids, as the answer has them."""

    def words(self, content: Content, subject: Content) -> str:
        """`says`, with the responses of this subject named."""
        return self.says(content)

    def facts(self, content: Content, subject: Content) -> list[tuple[str, str]]:
        """(name, words) pairs for `template`, if the kind has no template of its own."""
        return [(self.heading, self.words(content, subject))]

    @abstractmethod
    def columns(self, settings: Settings) -> Mapping[str, Callable[[Content], Any]]:
        """Columns of the CSV beside the common ones: {name: value of an answer}."""

    # ---- several answers ----

    def items(self, content: Content) -> list[Any]:
        """The parts of an answer that are matched by meaning."""
        return []

    @abstractmethod
    def judgement(self, content: Content) -> Any:
        """The answer without notes, reasons and spans: two answers with equal judgements agree."""

    def distance(self, one: Content, two: Content) -> float:
        """0 (the same) .. 1; kinds `by_meaning` have none."""
        raise NotImplementedError

    def agreement(self, contents: Sequence[Content], groups: Groups) -> float:
        """Agreement of two answers or more, in [0, 1]: mean over pairs of answers of 1 - distance."""
        if self.by_meaning:
            return _shared_items([len(self.items(content)) for content in contents], groups)
        return 1 - mean(self.distance(one, two) for one, two in combinations(contents, 2))

    @abstractmethod
    def majority(self, contents: Sequence[Content], groups: Groups) -> dict[str, Any] | None:
        """The judgement of more than half of the answers, part by part; None if some part has no such majority."""

    def united(self, content: dict[str, Any], contents: Sequence[Content], groups: Groups) -> dict[str, Any]:
        """One answer for answers with the same judgement, of which `content` is the first."""
        return content

    def rows(
        self, settings: Settings, subject: Content, example: Content, answers: Sequence[GivenAnswer], groups: Any
    ) -> list[AnswerRow]:
        """Everything that a reviewer decides about one task, in the order in which it is shown."""
        return item_rows(answers, groups, self.items)

    @abstractmethod
    def assemble(
        self, values: dict[str, str], kept: list[dict[str, Any]], subject: Content, answers: Sequence[GivenAnswer]
    ) -> dict[str, Any]:
        """The answer that a reviewer's decisions make: `values` of choice rows by their ids, `kept` items. May raise Undecided."""

    def fields(self, settings: Settings) -> list[Field]:
        """The fields on which agreement is measured; none for kinds whose items are matched."""
        return []

    # ---- gold, judges, the dataset ----

    def right(self, settings: Settings, given: Content, known: Content) -> bool | None:
        """Whether an answer is right by a known one; None if only matching by meaning can tell."""
        return bool(self.judgement(given) == self.judgement(known))

    def bare(self, content: Content) -> dict[str, Any]:
        """An answer without personal parts (notes, reasons for a choice), to compare others with."""
        return {name: value for name, value in content.items() if name != "note"}

    def from_labels(self, subject: Content, content: Content, least: int) -> dict[str, Any] | None:
        """A known answer from the labels of at least `least` people in the data; see `labelled`."""
        return None

    def at_odds(
        self, subject: Content, judged: Content | None, content: Content, answers: Sequence[Content]
    ) -> float | None:
        """0 .. 1: how far a judge's answer is from people's answers; None if the judge or the people said nothing."""
        return None

    def same_as(self, content: Content, suggested: Content) -> list[bool]:
        """Whether both answers say the same, for each judgement that both made."""
        return []

    def preferences(self, content: Content, subject: Content, example: Content, rater: str) -> list[dict[str, Any]]:
        """The preferences that an answer becomes in a published dataset."""
        return []

    def explained(self, subject: Content, example: Content) -> dict[str, Any] | None:
        """The preference of the example that the task is about, if there is one: the answer replaces it."""
        return None

    def note(self, content: Content, what: str) -> dict[str, Any]:
        """The parts of an answer for which an example has no field; `what` is published: "answers" or "resolutions"."""
        return {}

    def summary(self, given: Sequence[tuple[Content, Content]]) -> dict[str, Any]:
        """The labels that follow from all published answers about one example, given as (subject, answer) pairs."""
        return {}


def _shared_items(sizes: Sequence[int], groups: Groups) -> float:
    """Mean over pairs of answers of 2 x matched / (items of both): the structural F1 of RubricBench, in both directions."""
    together = Counter(pair for group in groups for pair in combinations(sorted(answer for answer, _ in group), 2))
    shares = []
    for one, two in combinations(range(len(sizes)), 2):
        size = sizes[one] + sizes[two]
        shares.append(2 * together[one, two] / size if size else 1.0)
    return mean(shares)


def subject_words(subject: Subject) -> str:
    """The part of the example that a task is about, by the ids of its responses."""
    if "a" in subject:
        arm = f" · {subject['arm']} rubric" if "arm" in subject else ""
        return f"{subject['a']} and {subject['b']}{arm}"
    if "response" in subject:
        return str(subject["response"])
    return with_noun(len(subject["responses"]), "responses") if "responses" in subject else "the prompt"
