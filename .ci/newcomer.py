"""The README's first command as a newcomer runs it: the distribution's Python, an ordinary user, a clean home, a new clone.

    /usr/bin/python3 .ci/newcomer.py

`make run` until every service runs and the sign-in link has signed in, Ctrl-C, and nothing may be left; then `make run` again, which
must find everything in place. Exit status 1, with the output, where one of these fails. As root it makes a user for the purpose and
removes it; as anybody else it makes a home. Only what this machine needs to reach its package index is handed on: its settings are no
part of the product. Needs nothing but the standard library, for it runs before anything is installed.
"""

import html
import http.cookiejar
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = "/usr/bin/python3"
INSTALL_LIMIT_S, START_LIMIT_S, END_LIMIT_S = 1800, 300, 60
RUNNING = ("postgres", "redis", "web", "ray", "celery", "beat")
HANDED_ON = re.compile(
    r"(PIP_|NPM_CONFIG_|npm_config_|TORCH_INDEX$|SSL_CERT|NODE_EXTRA_CA|(https?|no)_proxy$)", re.IGNORECASE
)
SETTINGS = (".config/pip/pip.conf", ".pip/pip.conf", ".npmrc")


class Failed(Exception):
    """What a newcomer would have met."""


class Newcomer:
    """A user with a home that holds a clone and nothing else. `command` is what starts the product there."""

    command = ("make", "run")

    def __init__(self) -> None:
        self.name = f"newcomer{os.getpid()}" if os.geteuid() == 0 else ""
        if self.name:
            subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", self.name], check=True)
        entry = pwd.getpwnam(self.name) if self.name else pwd.getpwuid(os.geteuid())
        self.uid, self.gid = entry.pw_uid, entry.pw_gid
        self.home = Path(entry.pw_dir) if self.name else Path(tempfile.mkdtemp(prefix="newcomer-"))
        self.clone = self.home / "touchstone"
        self.output = self.home / "output"

    def settle(self) -> None:
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", ROOT, self.clone], check=True)
        for name in SETTINGS:
            if (Path.home() / name).exists():
                (self.home / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(Path.home() / name, self.home / name)
        if self.name:
            subprocess.run(["chown", "-R", f"{self.uid}:{self.gid}", self.home], check=True)

    def environment(self) -> "dict[str, str]":
        ours = {name: value for name, value in os.environ.items() if HANDED_ON.match(name)}
        return {
            **ours,
            "HOME": str(self.home),
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "TMPDIR": tempfile.gettempdir(),
        }

    def become(self) -> None:
        """For a child between fork and exec."""
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell starts what runs beside it with Ctrl-C switched off
        if self.name:
            os.setgroups([])
            os.setgid(self.gid)
            os.setuid(self.uid)

    def make_run(self) -> "subprocess.Popen[bytes]":
        with self.output.open("wb") as out:
            return subprocess.Popen(
                self.command,
                cwd=str(self.clone),
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=self.become,
            )

    def processes(self) -> "list[int]":
        """Everything that was started from this home, wherever it went: the environment is inherited."""
        mark = f"HOME={self.home}".encode()
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (entry / "environ").read_bytes().split(b"\0") and (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:  # gone meanwhile, or somebody else's
                continue
        return found

    def leave(self) -> None:
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)
        if self.name:
            subprocess.run(["userdel", "--remove", self.name], check=True, stderr=subprocess.DEVNULL)
        else:
            shutil.rmtree(self.home, ignore_errors=True)
        for left in Path(tempfile.gettempdir()).glob(f"touchstone-{self.uid}-*" if self.name else "no such folder"):
            shutil.rmtree(left, ignore_errors=True)


class Run:
    """One `make run` of a newcomer."""

    def __init__(self, newcomer: Newcomer) -> None:
        self.newcomer = newcomer
        self.began = time.monotonic()
        self.command = " ".join(newcomer.command)
        self.process = newcomer.make_run()

    def said(self) -> str:
        return self.newcomer.output.read_text(errors="replace")

    def until(self, pattern: str, limit_s: float) -> str:
        """What the pattern's group, or all of it, matched in the output."""
        deadline = time.monotonic() + limit_s
        while True:
            ended = self.process.poll() is not None  # asked before: the last words are then all there
            if found := re.search(pattern, self.said(), re.MULTILINE):
                return found.group(found.lastindex or 0)
            if ended or time.monotonic() > deadline:
                raise Failed(f"`{self.command}` {'ended' if ended else f'took {limit_s} s'} without {pattern!r}")
            time.sleep(0.1)

    def page(self, limit_s: float) -> float:
        """Seconds until the page a browser is sent to first answered 200."""
        address = self.until(r"^Touchstone is at (\S+)$", limit_s)
        status, _ = get(opener(), address)
        if status != 200:
            raise Failed(f"{address} answered {status}")
        return time.monotonic() - self.began

    def stop(self) -> None:
        """Ctrl-C; nothing may be left of it."""
        os.killpg(self.process.pid, signal.SIGINT)
        try:
            self.process.wait(END_LIMIT_S)
        except subprocess.TimeoutExpired:
            raise Failed(f"`{self.command}` did not end within {END_LIMIT_S} s of Ctrl-C") from None
        if left := self.newcomer.processes():
            names = [Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode() for pid in left]
            raise Failed(f"after Ctrl-C there still ran: {names}")
        if "Everything is stopped; the data is kept." not in self.said():
            raise Failed(f"`{self.command}` did not say that everything is stopped")


def opener() -> urllib.request.OpenerDirector:
    """A browser without a past."""
    cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
    return urllib.request.build_opener(urllib.request.ProxyHandler({}), cookies)


def get(
    browser: urllib.request.OpenerDirector, address: str, form: "dict[str, str] | None" = None
) -> "tuple[int, str]":
    """Status and text; with a form it is posted."""
    data = urllib.parse.urlencode(form).encode() if form else None
    request = urllib.request.Request(address, data, {"Referer": address})  # noqa: S310  our own page
    try:
        with browser.open(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def sign_in(link: str) -> urllib.request.OpenerDirector:
    """Follows the link as a browser does, whose script presses the button of its page. The browser, signed in."""
    browser = opener()
    status, page = get(browser, link)
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    if status != 200 or token is None:
        raise Failed(f"the sign-in link answered {status} without a form")
    status, page = get(browser, link, {"csrfmiddlewaretoken": html.unescape(token.group(1))})
    if status != 200 or not re.search(r"<h1[^>]*>\s*Demo\s*</h1>", page):
        raise Failed(f"signing in by the link led to a page ({status}) that is not the demo's:\n{page[:2000]}")
    return browser


def walk(newcomer: Newcomer) -> None:
    first = Run(newcomer)
    installed = first.page(INSTALL_LIMIT_S)
    link = first.until(r"^(http\S+/sign-in/link/\S+)$", START_LIMIT_S)
    browser = sign_in(link)
    for name in RUNNING:
        first.until(rf"^{name:<10}running", START_LIMIT_S)
    first.until(r"^data      done", START_LIMIT_S)
    status, page = get(browser, link.partition("/sign-in/")[0] + "/datasets")
    if status != 200 or "Demo prompts" not in page:
        raise Failed(f"the demo's data are not where the newcomer looks ({status}):\n{page[:2000]}")
    if trouble := re.findall(r"^\w+ +(?:failed|restarting).*$", first.said(), re.MULTILINE):
        raise Failed(f"not all went well: {trouble}")
    first.stop()
    print(f"newcomer: installed, started and signed in; the page was there after {installed:.0f} s", flush=True)
    again = Run(newcomer)
    back = again.page(START_LIMIT_S)
    sign_in(again.until(r"^(http\S+/sign-in/link/\S+)$", START_LIMIT_S))
    if "Installing" in again.said() or re.search(r"^migrate +starting", again.said(), re.MULTILINE):
        raise Failed("the second `make run` did again what was done")
    again.stop()
    print(f"newcomer: the second `make run` was at its page after {back:.1f} s", flush=True)


def has_venv() -> None:
    """The README asks for it; a machine for tests may lack it."""
    if subprocess.run([PYTHON, "-c", "import ensurepip"], stderr=subprocess.DEVNULL).returncode:
        root = [] if os.geteuid() == 0 else ["sudo"]
        subprocess.run([*root, "apt-get", "update", "-q"], check=True)
        subprocess.run([*root, "apt-get", "install", "-y", "-q", "python3-venv"], check=True)


def main() -> int:
    has_venv()
    version = subprocess.run([PYTHON, "--version"], capture_output=True, text=True).stdout.strip()
    newcomer = Newcomer()
    try:
        newcomer.settle()
        print(f"newcomer: {version}, as user {newcomer.name or os.geteuid()} in {newcomer.home}", flush=True)
        walk(newcomer)
    except Failed as failed:
        print(
            f"newcomer: {failed}\n--- the output of make run:\n{newcomer.output.read_text(errors='replace')}",
            file=sys.stderr,
        )
        for log in sorted((newcomer.clone / "var" / "log").glob("*.log")):
            print(f"--- {log.name}\n{log.read_text(errors='replace')[-3000:]}", file=sys.stderr)
        return 1
    finally:
        newcomer.leave()
    return 0


if __name__ == "__main__":
    sys.exit(main())
