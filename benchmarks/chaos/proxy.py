"""The way from runs to the web server, through a port of our own that can be cut."""

import socket
import threading
from contextlib import suppress


class Proxy:
    """`to` is set once it is known. While the proxy is `cut`, it accepts no connection and ends open ones."""

    def __init__(self) -> None:
        self.to: tuple[str, int] | None = None
        self._cut = threading.Event()
        self._open: set[socket.socket] = set()
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = int(self._listening.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self._cut.set()
        self._throw_out(*self._open)

    def _throw_out(self, *lines: socket.socket) -> None:
        for line in lines:
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        self._cut.clear()

    def close(self) -> None:
        self.cut()
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._connect, args=(near,), daemon=True).start()

    def _connect(self, near: socket.socket) -> None:
        if self._cut.is_set() or self.to is None:
            return near.close()
        try:
            far = socket.create_connection(self.to, timeout=5)
        except OSError:
            return near.close()
        far.settimeout(None)
        self._open |= {near, far}
        if self._cut.is_set():  # meanwhile
            self._throw_out(near, far)
        back = threading.Thread(target=_pump, args=(far, near), daemon=True)
        back.start()
        _pump(near, far)
        back.join()
        self._open -= {near, far}
        near.close()
        far.close()
        return None


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    for each in (source, sink):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
