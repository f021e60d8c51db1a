"""The roll-ups of the page, in a browser: boxes as wide as their time, rows that open, search, sorting, and what the address keeps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nsys_report.reports.html.rollup import UNKNOWN, rollup_data, rollup_words
from nsys_report.reports.rollup_tree import Figures, Rollups, TreeRow
from tests.nsys_report import browser
from tests.nsys_report.pages import html_of

in_a_browser = pytest.mark.skipif(browser.why_not() is not None, reason=str(browser.why_not()))


def figures(name: str, time: float, roof: float | None = 0.5, **more: Any) -> Figures:
    return Figures(name, more.get("launches", 1.0), time, time / 400.0, roof, None, None, more.get("above", False))


def test_rows_in_words() -> None:
    six = Figures("h[*].up", 6.0, 300.0, 0.75, 1.25, 2_000_000.0, 100.0, True)
    odd = figures("call", 100.0, None, launches=2.5)
    way = ("name", "name", (TreeRow(0, six), TreeRow(1, leaf=0), TreeRow(0, odd)))
    made = rollup_data(Rollups((("dot.1", figures("h[0].up", 50.0)),), (way,)), "s")
    (_, _, rows) = made["ways"][0]
    assert rows[0] == [0, "h[*].up", 300, 1.25, 6.0, "6 × 50 ns", "300 ns", "75.0 %", "125.0 % ▲", "2.00 MB", "100 ns"]
    assert rows[1] == [1, 0]
    assert rows[2][3:6] == [UNKNOWN, 2.5, "2.5 × 40 ns"]
    assert made["leaves"][0][:3] == ["dot.1", "h[0].up", 50]
    said = rollup_words(Rollups((), (("name", "name", (TreeRow(0, six),)),)))
    assert said == "1 group of what runs in a typical step; most time: h[*].up 300 ns."


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    path: Path = tmp_path_factory.mktemp("rollup") / "page.html"
    path.write_text(html_of("decode"), encoding="utf-8")
    with browser.driven() as driver:
        browser.opened(driver, path)
        yield driver


BOX = "document.querySelector('.rollup')"


def rows(driver: Any) -> list[str]:
    return list(
        driver.execute_script(f"return Array.from({BOX}.querySelectorAll('tbody th button, tbody th span.open')).map(e => e.textContent)")
    )


@in_a_browser
def test_it_opens_searches_sorts_and_selects(page: Any) -> None:
    assert rows(page)[0] == "▸ layers[*].{gate_proj, up_proj}"
    widths = "b => parseFloat(b.style.width)"
    first = page.execute_script(f"return Array.from({BOX}.querySelectorAll('.icicle button')).slice(0, 2).map({widths})")
    assert first[0] == 100
    assert first[1] == pytest.approx(17.9, abs=0.4)  # the share of the widest group of the table
    page.execute_script(f"{BOX}.querySelector('tbody button').click()")
    assert rows(page)[1].startswith("layers[")
    assert len(rows(page)) == 12 + 6
    page.execute_script(f"const i = {BOX}.querySelector('input'); i.value = 'lm_head'; i.dispatchEvent(new Event('input'))")
    assert [name[2:] for name in rows(page)] == ["lm_head"] or rows(page)[0] == "▾ lm_head"
    page.execute_script(f"const i = {BOX}.querySelector('input'); i.value = ''; i.dispatchEvent(new Event('input'))")
    page.execute_script(f"{BOX}.querySelectorAll('thead button')[0].click()")
    names = [name[2:] for name in rows(page) if name[0] in "▸▾" and name[2] != "("]
    assert names[:2] == ["embed", "embed (norm)"]  # by name, and no longer by time
    page.execute_script(f"const s = {BOX}.querySelector('select'); s.value = 'source'; s.dispatchEvent(new Event('change'))")
    assert any("workloads.py" in name for name in rows(page))
    browser.until(lambda: "r.p0" in page.execute_script("return location.hash"), "the address keeps the way")
    assert browser.complaints(page) == []
