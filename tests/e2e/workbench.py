"""A project with tasks, and its annotator who uses the keyboard."""

import time
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.timeouts import SECONDS
from trainer.contracts import Example as ExampleRecord
from webapp.accounts.models import Membership
from webapp.annotation.models import Guidelines, Participant, Project, Task
from webapp.datasets.models import Dataset, DatasetVersion, Example, VersionMember

TEXTS = {
    "good": "Grace Hopper finished the first compiler in 1952. It turned symbols into machine code.",
    "bad": "The first compiler 😀 was written in 1987. It made coffee.",
}


def make_project(
    owner: Membership,
    *people: Membership,
    kind: str = "pairwise",
    name: str = "Autumn round",
    tasks: int = 6,
    record: Callable[[int], dict[str, Any]] | None = None,
    subject: dict[str, Any] | None = None,
    **settings: Any,
) -> Project:
    """An open project in which `people` take part. `record(number)` makes the parts of an example other than its key and prompt."""
    dataset = Dataset.objects.create(workspace=owner.workspace, name=f"data for {name}")
    version = DatasetVersion.objects.create(dataset=dataset, number=1, state="frozen", digest="d" * 64)
    project = Project.objects.create(
        workspace=owner.workspace,
        name=name,
        kind=kind,
        version=version,
        overlap=2,
        state="open",
        settings=settings,
        tasks_total=tasks,
        tasks_made=True,
    )
    Guidelines.objects.create(project=project, number=1, text="Prefer what a *careful expert* would send.")
    for number in range(tasks):
        row = _example(dataset, number, (record or _pair)(number))
        VersionMember.objects.create(version=version, example=row, position=number)
        chosen = {"a": "good", "b": "bad"} if subject is None else subject
        Task.objects.create(project=project, example=row, subject=chosen, rank=number, overlap=2)
    for person in people:
        Participant.objects.create(project=project, user=person.user)
    return project


def _pair(number: int) -> dict[str, Any]:
    return {"responses": [{"id": name, "text": text, "origin": f"model-{name}"} for name, text in TEXTS.items()]}


def _example(dataset: Dataset, number: int, parts: dict[str, Any]) -> Example:
    prompt = [{"role": "user", "content": f"Question {number}: who wrote the first compiler?"}]
    record = ExampleRecord.model_validate({"key": f"e{number}", "prompt": prompt, **parts})
    return Example.objects.create(
        dataset=dataset,
        key=record.key,
        digest=record.digest(),
        canonical=record.canonical(),
        excerpt=prompt[0]["content"],
        response_count=len(record.responses),
    )


def wait_until_sent(page: Page) -> None:
    """Waits until nothing is being sent. The page shows the next task before the server has answered about the last one."""
    expect(page.locator("#work-main")).to_have_attribute("data-waiting", "0")


def until(holds: Callable[[], bool], seconds: float = SECONDS) -> None:
    """Waits until the database has the change, because pages do not show when all changes have arrived."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not so within {seconds} s"
        time.sleep(0.05)


class Bench:
    """The workbench in a browser, by keyboard."""

    def __init__(self, page: Page, project: Project) -> None:
        self.page, self.project = page, project
        self.open()

    def open(self) -> None:
        self.page.goto(f"/projects/{self.project.id}/work")
        self.on_task(None)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def type(self, text: str) -> None:
        self.page.keyboard.type(text)

    def on_task(self, number: int | None) -> None:
        expect(self.page.locator("#work-prompt")).to_contain_text(
            "Question" if number is None else f"Question {number}:"
        )

    def saved(self) -> None:
        expect(self.page.locator("#work-save")).to_have_attribute("data-state", "saved")

    def says(self, text: str) -> None:
        expect(self.page.locator("#work-save")).to_contain_text(text)

    def delivered(self) -> None:
        wait_until_sent(self.page)

    def reason(self, number: int) -> Locator:
        return self.page.get_by_role("textbox", name=f"Reason {number}")

    def choice(self) -> str:
        """The value of the chosen step of the first row, or "" if there is none."""
        return str(self.page.evaluate("document.querySelector('.work-scale :checked')?.value ?? ''"))
