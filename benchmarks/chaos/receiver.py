"""The receiver of a webhook: it writes down every message before it acknowledges it."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from .ledger import Ledger


class Receiver:
    def __init__(self, ledger: Ledger) -> None:
        class HookHandler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                ledger.write("heard", event=message["type"], id=self.headers["webhook-id"])
                self.send_response(204)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing, because the ledger has it."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), HookHandler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
