"""Serve the built site and open its pages in a browser; without a site or a browser, the tests are skipped."""

from __future__ import annotations

import contextlib
import functools
import http.server
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def built() -> Path:
    """Return the folder of the built site, which ``XPGRAD_SITE`` names."""
    if "XPGRAD_SITE" not in os.environ:
        pytest.skip("XPGRAD_SITE does not name the site that was built (CONTRIBUTING says how)")
    path = Path(os.environ["XPGRAD_SITE"]).resolve()
    assert (path / "index.html").exists(), f"there is no site in {path}"
    return path


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass

    def copyfile(self, *args: Any) -> None:
        with contextlib.suppress(ConnectionError):  # the browser leaves a page before all of it has loaded
            super().copyfile(*args)


@pytest.fixture(scope="session")
def address(built: Path) -> Iterator[str]:
    """Serve the site on the loopback interface and return its address."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(built))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Start a headless browser."""
    sync_api = pytest.importorskip("playwright.sync_api")
    found = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("needs a browser: chromium or google-chrome")
    with sync_api.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield running
        running.close()
