"""The path of this machine's Chromium, and how to start it without a display.

The headless shell comes first: it is Chromium without the parts that draw windows, and needs less of the processor.
"""

import shutil

SHELL = shutil.which("chromium-headless-shell")
OTHER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
CHROMIUM = SHELL or OTHER
LIKE_PEOPLES = OTHER or SHELL
"""For measurements and pictures, which must show what people see in their browsers."""
HOW_TO_GET_IT = (
    "no Chromium on this machine; on Debian: sudo apt-get install chromium-headless-shell; on Ubuntu: chromium"
)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
