"""Names of files: programs choose them, and a file system and object storage both keep them."""

from urllib.parse import quote

import pytest

from tests.webapp.experiments.outputs.test_artifact_store import bucket, one_server  # noqa: F401 - fixtures

from .rest_client import ARTIFACTS, RestClient

pytestmark = pytest.mark.django_db
NAMES = (
    "confusion matrix.png", "plot (1).txt", ".gitignore", "résumé.txt", "a+b=c@d.txt", "[x] 50%.json", "-dash.txt", "my runs/a b/c d.txt",
)  # fmt: skip


@pytest.fixture(autouse=True)
def place(settings, tmp_path):
    settings.VAR = tmp_path / "var"


def test_a_file_may_have_any_letters(rest_client):
    check_names(rest_client)


def test_a_file_may_have_any_letters_in_object_storage(rest_client, bucket):  # noqa: F811
    check_names(rest_client)
    assert bucket.names(), "the files are in the bucket"


def check_names(rest_client: RestClient) -> None:
    run = rest_client.run()
    root = f"{ARTIFACTS}/{rest_client.get_run(run)['info']['experiment_id']}/{run}/artifacts"
    for place, name in enumerate(NAMES):
        answer = rest_client.client.put(f"{root}/{quote(name)}", str(place), content_type="application/octet-stream")
        assert answer.status_code == 200, (name, answer.content)
    for place, name in enumerate(NAMES):
        fetched = rest_client.client.get(f"{root}/{quote(name)}")
        assert b"".join(fetched) == str(place).encode(), name
    listed = rest_client.get("artifacts/list", run_id=run).json()["files"]
    assert {each["path"] for each in listed} == {name.partition("/")[0] for name in NAMES}
