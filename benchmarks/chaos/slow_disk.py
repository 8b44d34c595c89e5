"""A slow disk: every fsync and fdatasync of a tree of processes is delayed before it is carried out.

The kernel asks us about these two calls (seccomp's user notification) and carries them out once we allow it. Everything that the process
starts inherits the filter, in any language. Needs Linux 5.5 or newer on x86-64 or aarch64, and no root.
"""

import ctypes
import fcntl
import platform
import socket
import struct
import threading
from contextlib import suppress

PR_SET_NO_NEW_PRIVS = 38
SET_MODE_FILTER, NEW_LISTENER = 1, 8
ALLOW, ASK = 0x7FFF0000, 0x7FC00000
CARRY_OUT = 1
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
# machine -> (its name for the kernel, the number of seccomp, those of fsync and fdatasync)
MACHINES = {"x86_64": (0xC000003E, 317, (74, 75)), "aarch64": (0xC00000B7, 277, (82, 83))}
NOTICE, REPLY = 80, 24  # bytes of struct seccomp_notif and seccomp_notif_resp


def _request(number: int, size: int) -> int:
    return 3 << 30 | size << 16 | ord("!") << 8 | number


def available() -> bool:
    return platform.machine() in MACHINES


class SlowDisk:
    """`Popen(preexec_fn=disk.enter)` puts a process and all its children on the slow disk; `start` is called once it runs. `delay_s` may be
    changed.
    """

    def __init__(self, delay_s: float) -> None:
        self.delay_s = delay_s
        self.held = 0
        self._ours, self._theirs = socket.socketpair()
        self._file = -1

    def enter(self) -> None:
        """Called in the child, before it becomes the program."""
        machine, seccomp, calls = MACHINES[platform.machine()]
        code = [(LOAD, 0, 0, 4), (EQUAL, 0, 4, machine), (LOAD, 0, 0, 0), (EQUAL, 1, 0, calls[0])]
        code += [(EQUAL, 0, 1, calls[1]), (RETURN, 0, 0, ASK), (RETURN, 0, 0, ALLOW)]
        filters = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in code))
        program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(code), ctypes.addressof(filters)))
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        file = libc.syscall(seccomp, SET_MODE_FILTER, NEW_LISTENER, ctypes.c_void_p(ctypes.addressof(program)))
        if file < 0:
            raise OSError(ctypes.get_errno(), "seccomp")
        socket.send_fds(self._theirs, [b"x"], [file])

    def start(self) -> None:
        _, files, _, _ = socket.recv_fds(self._ours, 1, 1)
        self._file = files[0]
        threading.Thread(target=self._listen, daemon=True).start()

    def close(self) -> None:
        self.delay_s = 0.0
        self._ours.close()
        self._theirs.close()

    def _listen(self) -> None:
        while True:
            notice = bytearray(NOTICE)
            try:
                fcntl.ioctl(self._file, _request(0, NOTICE), notice)
            except OSError:  # the caller was killed meanwhile, or no process is left
                if not _anybody(self._file):
                    return
                continue
            self.held += 1
            (number,) = struct.unpack_from("Q", notice)
            timer = threading.Timer(self.delay_s, self._carry_out, args=(number,))
            timer.daemon = True
            timer.start()

    def _carry_out(self, number: int) -> None:
        with suppress(OSError):  # killed while it waited
            fcntl.ioctl(self._file, _request(1, REPLY), struct.pack("QqiI", number, 0, 0, CARRY_OUT))


def _anybody(file: int) -> bool:
    """Whether a process with the filter still lives: the kernel signals a hang-up once the last one has ended."""
    import select

    poll = select.poll()
    poll.register(file, select.POLLIN)
    return not any(event & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, event in poll.poll(0))
