"""A program that uses MLflow's REST protocol without MLflow."""

from django.test import Client

from webapp.accounts.tokens.services import create_token

TRACKING = "/mlflow/api/2.0/mlflow/"
ARTIFACTS = "/mlflow/api/2.0/mlflow-artifacts/artifacts"


class RestClient:
    def __init__(self, membership=None, areas=None, secret="") -> None:
        if membership is not None:
            secret = create_token(membership, "mlflow", rights=areas)[1]
        self.client = Client(headers={"authorization": f"Bearer {secret}"}, raise_request_exception=True)

    def post(self, what: str, **body):
        return self.client.post(TRACKING + what, body, content_type="application/json")

    def get(self, what: str, **query):
        return self.client.get(TRACKING + what, query)

    def ask(self, method: str, what: str, body: dict):
        if method == "get":
            return self.get(what, **body)
        return getattr(self.client, method)(TRACKING + what, body, content_type="application/json")

    def run(self, experiment: str = "0", **body) -> str:
        answer = self.post("runs/create", experiment_id=experiment, **body)
        assert answer.status_code == 200, answer.content
        return answer.json()["run"]["info"]["run_id"]

    def get_run(self, key: str) -> dict:
        return self.get("runs/get", run_id=key).json()["run"]

    def metrics(self, key: str) -> dict:
        return {each["key"]: each["value"] for each in self.get_run(key)["data"]["metrics"]}

    def log(self, key: str, *metrics, **batch):
        """`metrics`: (key, value, step) or (key, value, step, timestamp)."""
        rows = [
            {"key": name, "value": value, "step": step, "timestamp": (rest or [1_700_000_000_000 + step])[0]}
            for name, value, step, *rest in metrics
        ]
        return self.post("runs/log-batch", run_id=key, metrics=rows, **batch)

    def send(self, key: str, path: str, content: bytes, experiment: str | None = None):
        experiment = experiment or self.get_run(key)["info"]["experiment_id"]
        at = f"{ARTIFACTS}/{experiment}/{key}/artifacts/{path}"
        return self.client.put(at, content, content_type="application/octet-stream")


def error(answer) -> tuple[int, str]:
    return answer.status_code, answer.json()["error_code"]
