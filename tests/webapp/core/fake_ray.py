"""A small HTTP server that speaks Ray's job API like Ray 2.60: its paths, its bodies, its status codes."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class FakeRay:
    """`jobs`: submission id -> {"status", "message", "logs", "body", "exit_code"}. `broken` makes every answer a 500."""

    def __init__(self, token: str = "") -> None:
        self.jobs: dict[str, dict] = {}
        self.nodes: list[dict] = []
        self.stopped: list[str] = []
        self.posts = 0
        self.broken = self.lose_answers = False
        self.token = token
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.answer(self, "GET")

            def do_POST(self):
                outer.answer(self, "POST")

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def answer(self, http: BaseHTTPRequestHandler, method: str) -> None:
        length = int(http.headers.get("Content-Length") or 0)
        body = json.loads(http.rfile.read(length)) if length else {}
        if self.token and http.headers.get("Authorization") != f"Bearer {self.token}":
            return self.send(http, 401, "Unauthorized")
        if self.broken:
            return self.send(http, 500, "Traceback\nTimeoutError: no agent")
        path = http.path.rstrip("/")
        if path == "/nodes?view=summary":
            return self.send(http, 200, {"data": {"summary": self.nodes}})
        if path == "/api/jobs" and method == "POST":
            return self.submit(http, body)
        if path == "/api/jobs":
            return self.send(http, 200, [self.listed(job_id, job) for job_id, job in self.jobs.items()])
        job_id, _, verb = path.removeprefix("/api/jobs/").partition("/")
        job = self.jobs.get(job_id)
        if job is None:
            return self.send(http, 404, f"Job {job_id} does not exist")
        if verb == "stop":
            self.stopped.append(job_id)
            if job["status"] in ("PENDING", "RUNNING"):
                job["status"] = "STOPPED"
            return self.send(http, 200, {"stopped": True})
        if verb == "logs":
            return self.send(http, 200, {"logs": job["logs"]})
        told = {"status": job["status"], "message": job["message"], "driver_exit_code": job.get("exit_code")}
        return self.send(http, 200, told | {"submission_id": job_id})

    @staticmethod
    def listed(job_id: str, job: dict) -> dict:
        command = job.get("body", {}).get("entrypoint", "")
        about = {"type": "SUBMISSION", "submission_id": job_id, "job_id": None}
        return {**about, "status": job["status"], "entrypoint": command, "start_time": job.get("start_time")}

    def submit(self, http: BaseHTTPRequestHandler, body: dict) -> None:
        self.posts += 1
        job_id = body["submission_id"]
        if not isinstance(body.get("entrypoint"), str):
            return self.send(http, 400, "TypeError: entrypoint must be a string")
        if job_id in self.jobs:
            return self.send(http, 500, f"ValueError: Job with submission_id {job_id} already exists.")
        self.jobs[job_id] = {"status": "RUNNING", "message": "", "logs": "", "body": body}
        if self.lose_answers:
            http.close_connection = True
            return None
        return self.send(http, 200, {"job_id": job_id, "submission_id": job_id})

    @staticmethod
    def send(http: BaseHTTPRequestHandler, status: int, body: object) -> None:
        data = (body if isinstance(body, str) else json.dumps(body)).encode()
        http.send_response(status)
        http.send_header("Content-Length", str(len(data)))
        http.end_headers()
        http.wfile.write(data)
