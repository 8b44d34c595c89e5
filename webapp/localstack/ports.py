"""Free TCP ports."""

import errno
import socket


def is_free(port: int, host: str = "127.0.0.1") -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a port in TIME_WAIT is free
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True


def free_port(preferred: int, host: str = "127.0.0.1") -> int:
    """The preferred port, one of the twenty after it, or any."""
    for port in range(preferred, min(preferred + 21, 65536)):
        if preferred and is_free(port, host):
            return port
    return free_ports(1, host)[0]


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """`count` different free ports, chosen by the kernel."""
    probes = [socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) for _ in range(count)]
    try:
        for probe in probes:
            probe.bind((host, 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()


class ReservedPort:
    """A free port that no other Touchstone of this machine chooses while this object lives: `number`.

    Minutes may pass until a server listens there, and a port is only taken once somebody does. So the number is reserved by a name that
    the kernel keeps for us and forgets when we end: an abstract socket, of the same network namespace as the port.
    """

    def __init__(self, preferred: int, host: str = "127.0.0.1") -> None:
        self.preferred, self.host = preferred, host
        self.was_used = False
        self._name: socket.socket | None = None
        self.number = self._choose()

    def look_again(self) -> bool:
        """Checks the number before a server starts. Returns whether it changed, because another program listens at the old one. A port that
        we used stays, because people have its address."""
        if self.was_used or is_free(self.number, self.host):
            return False
        self.number = self._choose()
        return True

    def _choose(self) -> int:
        near = range(self.preferred, min(self.preferred + 21, 65536)) if self.preferred else range(0)
        for port in near:
            if self._take(port):
                return port
        while not self._take(port := free_ports(1, self.host)[0]):
            pass
        return port

    def _take(self, port: int) -> bool:
        name = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            name.bind(f"\0touchstone-port-{port}")
        except OSError as error:
            name.close()
            if error.errno != errno.EADDRINUSE:
                raise
            return False
        if not is_free(port, self.host):
            name.close()
            return False
        if self._name:
            self._name.close()
        self._name = name
        return True
