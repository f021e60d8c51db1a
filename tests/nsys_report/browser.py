"""A headless browser without a network, for the tests that drive the page."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def why_not() -> str | None:
    """Why there is no browser to drive here, or None."""
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "selenium is not installed (pip install -e '.[dev]')"
    if _browser() is None:
        return "no Chromium is installed (apt-get install chromium)"
    if shutil.which("chromedriver") is None:
        return "no chromedriver is installed (apt-get install chromium-driver)"
    return None


def _browser() -> str | None:
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


@contextmanager
def driven(width: int = 1280, height: int = 900) -> Iterator[Any]:
    """A browser of that size with the network off; every message of its console is kept."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(_browser())
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", f"--window-size={width},{height}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(shutil.which("chromedriver"))))
    try:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        driver.execute_cdp_cmd("Network.enable", {})
        off = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
        driver.execute_cdp_cmd("Network.emulateNetworkConditions", off)
        yield driver
    finally:
        driver.quit()


def opened(driver: Any, path: Path) -> None:
    """Opens a page and waits until its charts are drawn."""
    driver.get(path.as_uri())
    until(lambda: driver.execute_script("return document.documentElement.dataset.ready") == "yes", "the charts are drawn")


def until(holds: Any, what: str, seconds: float = 30) -> None:
    """Waits until something holds. Raises AssertionError where it does not come to hold."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not in {seconds} s: {what}"
        time.sleep(0.05)


def complaints(driver: Any) -> list[str]:
    """What the page's console says apart from remarks, since the last time."""
    return [entry["message"] for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
