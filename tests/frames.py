"""How long the page's timeline takes for a frame while it is zoomed, in a browser without a GPU: a tool, no test.

    python -m tests.frames PAGE.html ...

Prints for each page its bytes, when it can be used, the marks of its first timeline, and of 120 frames that zoom over them the median and
the 90th percentile of script alone and of whole frames (16.7 ms is a screen's own pace: script and paint took no longer).
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.nsys_report import browser

ZOOM = """
const done = arguments[0], [timeline] = report.timelines.values(), { span } = timeline.raw, script = [], frames = [];
const { draw } = timeline.painter, middle = (values, share) => values.sort((a, b) => a - b)[Math.floor(values.length * share)];
timeline.painter.draw = () => { const from = performance.now(); draw(); script.push(performance.now() - from); };
let last = 0;
function step(now) {
  if (last) frames.push(now - last);
  last = now;
  const half = span * (0.3 + 0.2 * Math.cos(frames.length / 10));
  report.viewTimeline(timeline, span / 2 - half, span / 2 + half);
  if (frames.length < 120) return requestAnimationFrame(step);
  done([timeline.rows.reduce((sum, row) => sum + row.start.length, 0), middle(script, 0.5), middle(script, 0.9),
        middle(frames, 0.5), middle(frames, 0.9)]);
}
requestAnimationFrame(step);
"""
USABLE = "return performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"


def main(pages: list[str]) -> None:
    with browser.driven(1440, 900) as driver:
        for page in map(Path, pages):
            browser.opened(driver, page.resolve())
            usable = driver.execute_script(USABLE)
            driver.execute_script("document.querySelector('.timeline').scrollIntoView()")
            marks, script, slow_script, frame, slow_frame = driver.execute_async_script(ZOOM)
            print(f"{page.name}: {page.stat().st_size:,} bytes, usable after {usable:.0f} ms, {marks:,} marks; "
                  f"script {script:.1f} ms (p90 {slow_script:.1f}), frame {frame:.1f} ms (p90 {slow_frame:.1f})")  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
