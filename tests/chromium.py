"""Chromium for the browser tests: an installed one, else Debian's package, else Playwright's download.

`python tests/chromium.py` installs one where none is found, and says which it is.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")

# The sandbox does not work as root. The other flags keep Chromium from calling its makers, so that what a test's
# listening server sees was asked for by a page.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def find() -> Path | None:
    """The Chromium to use: $OVERREAD_CHROMIUM, one on the path, or the one that Playwright downloaded."""
    named = os.environ.get("OVERREAD_CHROMIUM")
    if named:
        return Path(named)
    for name in NAMES:
        installed = shutil.which(name)
        if installed:
            return Path(installed)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        downloaded = Path(playwright.chromium.executable_path)
    return downloaded if downloaded.exists() else None


def install() -> None:
    """Install Debian's package if we may, else have Playwright download a build."""
    try:
        install_debian_package()
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"Debian's package could not be installed ({error}): asking Playwright for its build", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=True)


def install_debian_package() -> None:
    """Run apt-get as root, or through sudo where it asks no password."""
    as_root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    apt_get = [*as_root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]
    subprocess.run([*apt_get, "update"], check=True, stdin=subprocess.DEVNULL)
    subprocess.run(
        [*apt_get, "install", "--yes", "--no-install-recommends", "chromium"],
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )


def main() -> int:
    """Find or install; say which, or what to do."""
    if find() is None:
        print("No Chromium here: installing one for the browser tests")
        try:
            install()
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"Playwright's build could not be installed either ({error}).", file=sys.stderr)
    found = find()
    if found is None or not found.exists():
        print(
            "The browser tests need Chromium, and none could be found or installed. Install it"
            " (Debian: apt-get install chromium), or name it: OVERREAD_CHROMIUM=/path/to/chromium make test",
            file=sys.stderr,
        )
        return 1
    print(f"Chromium: {found}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
