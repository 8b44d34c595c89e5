"""The documentation in the product: the list, every link of every page, who may read it, and the same pages for programs."""

import re
from html import unescape
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from tests.pages import page_html
from trainer.config.alarms import SIGNALS, page
from webapp.accounts.tokens.services import create_token
from webapp.environment import BASE_DIR
from webapp.help import pages, rendering

pytestmark = pytest.mark.django_db
LINK = re.compile(r'<a href="([^"]+)"')
PICTURE = re.compile(r'<img src="([^"]+)"')
ANCHOR = re.compile(r'<h\d id="([^"]+)"')


def all_pages() -> list[pages.HelpFile]:
    return [each for each in pages.files().values() if each.is_page]


def test_every_link_of_every_page_leads_somewhere_in_the_product(as_annotator):
    """As in a repository: to a page, to a heading of it, or to a file that the help has."""
    found = {pages.address(each): rendering.rendered(each) for each in all_pages()}
    anchors = {address: set(ANCHOR.findall(each.html)) for address, each in found.items()}
    wrong, links = [], set()
    for address, each in found.items():
        wrong += [f"{address}: {link} is not in the help" for link in each.lost]
        for link in map(unescape, [*LINK.findall(each.html), *PICTURE.findall(each.html)]):
            there, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:", link):
                continue
            links.add(there)
            if anchor and anchor not in anchors.get(there or address, ()):
                wrong.append(f"{address}: {link} has no such heading")
    assert not wrong, "\n".join(wrong)
    refused = [link for link in sorted(links - {""}) if as_annotator.get(link).status_code != 200]
    assert not refused and len(links) > 80


def test_the_list_has_every_page_that_the_readme_names(as_annotator):
    page = page_html(as_annotator.get("/help"))
    assert as_annotator.get("/help/").url == "/help"
    named = re.findall(r"^- \[[^\]]*\]\(([^)]+)\)", (BASE_DIR / "docs/README.md").read_text(), re.MULTILINE)
    entries = [each for section in pages.sections() for each in section.entries]
    assert len(entries) == len(named) > 50
    assert 'href="/help/alarms"' in page and "Reward hacking" in page and "hacking.md" not in page
    assert as_annotator.get("/help/README").url == "/help"


def test_every_page_of_docs_is_in_the_list():
    listed = {each.file.name for section in pages.sections() for each in section.entries}
    there = {path.relative_to(BASE_DIR).as_posix() for path in (BASE_DIR / "docs").rglob("*.md")}
    assert {each for each in there - listed if not each.startswith("docs/results/")} == {"docs/README.md"}


def test_a_page_has_its_title_headings_pictures_and_the_way_back(as_annotator):
    page = page_html(as_annotator.get("/help/from-opinions"))
    assert page.count("<h1") == 1 and 'href="/help"' in page and "On this page" in page
    assert 'src="/help/images/journey/answers.png"' in page
    picture = as_annotator.get("/help/images/journey/answers.png")
    assert picture["Content-Type"] == "image/png" and picture.content[:4] == b"\x89PNG"
    assert "Steps that teach nothing" in page_html(as_annotator.get("/help/curricula"))
    assert 'id="steps-that-teach-nothing"' in page_html(as_annotator.get("/help/curricula"))


@pytest.mark.parametrize(
    "address",
    [
        "nothing",
        "../manage.py",
        "%2e%2e/manage.py",
        "project/manage.py",
        "project/.env",
        "images/journey",
        "alarms.md.md",
    ],
)
def test_no_address_leads_to_another_file(as_owner, address):
    assert as_owner.get(f"/help/{address}").status_code == 404


def test_a_person_without_a_workspace_reads_and_a_stranger_signs_in(client):
    assert client.get("/help").url.startswith("/sign-in") and client.get("/help/alarms").url.startswith("/sign-in")
    assert client.get("/help/alarms.md").url == "/sign-in?next=/help/alarms.md"
    alone = Client()
    alone.force_login(get_user_model().objects.create_user("alone@example.org"))
    assert "Dead gradients" in page_html(alone.get("/help/alarms")) and alone.get("/help").status_code == 200


def test_programs_get_markdown_with_a_token_and_llms_txt_names_the_pages(team):
    told = Client().get("/llms.txt").content.decode()
    assert "/help/alarms.md)" in told and "/help/recipes/sft.md)" in told
    _, secret = create_token(team.annotator, "reader")
    reader = Client(headers={"Authorization": f"Bearer {secret}"})
    for address in re.findall(r"\]\([^)]*?(/help/[^)]+)\)", told):
        answer = reader.get(address)
        assert answer.status_code == 200 and answer["Content-Type"] == "text/markdown; charset=utf-8", address
    assert reader.get("/help/alarms.md").content == (BASE_DIR / "docs/alarms.md").read_bytes()
    refused = Client(headers={"Authorization": "Bearer ts_wrong"}).get("/help/alarms.md")
    assert (refused.status_code, refused["WWW-Authenticate"]) == (401, "Bearer")


def test_a_script_in_a_page_would_not_run(tmp_path: Path):
    path = tmp_path / "page.md"
    path.write_text(
        "# `A` page\n\n<script>alert(1)</script> [x](javascript:alert(1)) ![y](https://elsewhere.example/y.png)\n\n## One\n\n## One\n"
    )
    found = rendering.rendered(pages.HelpFile("docs/page.md", "page", path))
    assert found.title == "A page" and "<script" not in found.html and 'href="javascript:' not in found.html
    assert "elsewhere" not in found.html
    assert [each.anchor for each in found.headings] == ["one", "one-1"]


def test_an_installation_without_docs_says_so(as_annotator, monkeypatch, tmp_path):
    assert pages.files(tmp_path) == {}
    monkeypatch.setattr(pages, "by_name", dict)
    monkeypatch.setattr(pages, "sections", tuple)
    assert "This installation lacks the folder docs/" in page_html(as_annotator.get("/help"))


def test_each_alarm_names_a_page_and_a_heading_that_exist():
    for signal in [*SIGNALS, "unknown"]:
        name, _, anchor = page(signal).partition("#")
        found = rendering.rendered(pages.by_name()[f"docs/{name}"])
        assert not anchor or f'id="{anchor}"' in found.html, signal


def test_requests_in_several_languages_are_one_group(tmp_path: Path):
    path, mark = tmp_path / "page.md", "```"
    curl, python, file = "    api $base/x", f"{mark}python\nserver.x()\n{mark}", f"{mark}yaml\na: 1\n{mark}"
    path.write_text("\n\n".join(["# A", curl, python, file, "    touchstone x", "words", python, "    pip install x"]))
    html = rendering.rendered(pages.HelpFile("docs/page.md", "page", path)).html
    _, *parts = html.split('<div class="language-name">')
    assert [part.partition("<")[0] for part in parts] == ["curl", "Python", "Command"]
    assert "a: 1" in parts[2] and "touchstone x" in parts[2].partition("words")[0]
    assert html.count('class="languages"') == 1, "an example that no command follows stays as it is"
