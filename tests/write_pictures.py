"""Writes the README's pictures from a fixture: `python -m tests.write_pictures`. Needs Chromium and chromedriver."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

import nsys_report
from tests.nsys_report import browser

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "fixtures" / "pictures"
FIXTURE = ROOT / "fixtures" / "decode"
COLORS = 256
"""Of a picture of flat colors: a quarter of the bytes, and nobody sees it."""


def main() -> None:
    """Writes the page's first screen and the step budget."""
    analysis = nsys_report.analyze(FIXTURE / "capture.sqlite", FIXTURE / "xla_dump")
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, browser.driven(1280, 860) as driver:
        browser.opened(driver, analysis.save(Path(folder) / "report.html"))
        write(driver.get_screenshot_as_png(), FOLDER / "page.png")
    drawn = io.BytesIO()
    analysis.plot.budget().savefig(drawn, format="png", metadata={"Software": None})
    write(drawn.getvalue(), FOLDER / "budget.png")


def write(picture: bytes, path: Path) -> None:
    """A picture in few colors, rare ones kept: a chip of a legend is a few pixels."""
    from PIL import Image

    image = Image.open(io.BytesIO(picture)).convert("RGB").quantize(COLORS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    image.save(path, optimize=True)


if __name__ == "__main__":
    main()
