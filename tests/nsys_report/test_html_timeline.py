"""The timeline in a browser: as many marks as the data, zoomed, moved, pointed at, walked by keys, selected, in the address."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nsys_report.notebook import analyze
from nsys_report.reports.html.page import render
from tests.nsys_report import browser
from tests.nsys_report.pages import FIXTURES, analyzed, html_of, page_of
from tests.nsys_report.test_timeline import timeline

pytestmark = [
    pytest.mark.skipif(browser.why_not() is not None, reason=str(browser.why_not())),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
T = "report.timelines.get('p0-time')"


@pytest.fixture(scope="module")
def chrome() -> Iterator[Any]:
    with browser.driven() as driver:
        yield driver


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("timeline") / "page.html"
    path.write_text(html_of("decode"), encoding="utf-8")
    return path


@pytest.fixture
def decode(chrome: Any, page: Path) -> Any:
    return opened(chrome, page)


def opened(driver: Any, page: Path, address: str = "") -> Any:
    driver.get("about:blank")
    driver.get(page.as_uri() + address)
    browser.until(lambda: driver.execute_script("return document.documentElement.dataset.ready") == "yes", "the charts are drawn")
    driver.execute_script("document.getElementById('p0-time').scrollIntoView({block: 'center'})")
    return driver


def view(driver: Any) -> list[float]:
    return list(driver.execute_script(f"return [{T}.low, {T}.high]"))


def press(driver: Any, *keys: str) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    driver.execute_script("document.getElementById('p0-time').focus({preventScroll: true})")
    ActionChains(driver).send_keys(*keys).perform()


def said(driver: Any) -> str:
    return str(driver.execute_script("return document.getElementById('p0-time-said').textContent"))


STREAM = f"""
const t = {T}, lane = t.lanes.all.find(one => one.row?.kind === 'stream'), row = lane.row;
let at = 0;
row.start.forEach((start, i) => {{
  if (start > t.low && row.end[i] < t.high && row.end[i] - start > row.end[at] - row.start[at] || row.start[at] < t.low) at = i;
}});
const box = t.host.getBoundingClientRect(), plot = t.painter.plot();
const x = plot.left + ((row.start[at] + row.end[at]) / 2 - t.low) / (t.high - t.low) * plot.width;
return [x - box.width / 2, lane.y + lane.height / 2 - box.height / 2, t.raw.looks[row.look[at]][0]];
"""
"""Where the longest kernel in view is, from the middle of the timeline, and its name."""


def at_a_kernel(driver: Any) -> tuple[Any, str]:
    from selenium.webdriver.common.action_chains import ActionChains

    driver.execute_script("document.getElementById('p0-time').scrollIntoView({block: 'end'})")
    x, y, name = driver.execute_script(STREAM)
    host = driver.find_element("id", "p0-time")
    return ActionChains(driver).move_to_element_with_offset(host, round(x), round(y)), name


def test_there_are_as_many_marks_as_the_capture_has(decode: Any) -> None:
    rows = f"{T}.rows.filter(row => row.kind !== 'execution')"
    assert decode.execute_script(f"return {rows}.reduce((n, row) => n + row.start.length, 0)") == len(timeline("decode"))
    assert decode.execute_script(f"return {T}.rows.length - {rows}.length") == 3  # a row for each program
    ends = decode.execute_script(f"return {rows}.map(row => row.end[row.end.length - 1])")
    assert ends == [int(row.start_ns[-1] + row.duration_ns[-1]) for row in timeline("decode").rows]


def test_it_opens_on_the_median_step_and_zooms_to_the_whole_and_to_a_microsecond(decode: Any) -> None:
    step = timeline("decode").steps[0]
    assert view(decode) == [step.low_ns, step.high_ns]
    press(decode, "+")
    assert view(decode)[1] - view(decode)[0] == pytest.approx((step.high_ns - step.low_ns) / 2)
    press(decode, "0")
    assert view(decode) == [0, timeline("decode").span_ns]
    press(decode, *"+" * 17)
    assert view(decode)[1] - view(decode)[0] < 1000
    decode.find_element("css selector", "[data-for=p0-time][data-zoom=all]").click()
    assert view(decode) == [0, timeline("decode").span_ns]
    assert browser.complaints(decode) == []


def test_dragging_moves_and_dragging_over_the_overview_zooms(decode: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    host = decode.find_element("id", "p0-time")
    low, high = view(decode)
    ActionChains(decode).move_to_element_with_offset(host, 0, 0).click_and_hold().move_by_offset(-100, 0).release().perform()
    moved = view(decode)
    assert moved[0] > low and moved[1] - moved[0] == pytest.approx(high - low)
    top = 10 - host.size["height"] // 2
    ActionChains(decode).move_to_element_with_offset(host, 0, top).click_and_hold().move_by_offset(60, 0).release().perform()
    share = 60 / decode.execute_script(f"return {T}.painter.plot().width")
    assert view(decode)[1] - view(decode)[0] == pytest.approx(timeline("decode").span_ns * share, rel=0.05)


def test_pointing_says_what_a_mark_is_and_pressing_selects_it_everywhere(decode: Any) -> None:
    chain, name = at_a_kernel(decode)
    chain.perform()
    browser.until(lambda: name in said(decode), "it is named")
    assert "class" in said(decode) and "takes" in said(decode)
    assert decode.execute_script("return report.selection") is None
    at_a_kernel(decode)[0].click().perform()
    selection = decode.execute_script("return report.selection")
    assert selection["name"] == name and selection["section"].startswith("p0-s")
    assert decode.execute_script("return [...document.querySelectorAll('tr.selected .open')].map(e => e.textContent)")[0] == name
    assert decode.execute_script(f"return [...{T}.selected].every(n => {T}.raw.looks[n][3] === '{name}')")


def test_keys_walk_from_mark_to_mark_and_lead_to_the_table(decode: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    press(decode, Keys.ARROW_RIGHT)
    first = decode.execute_script(f"return {T}.chosen.at")
    press(decode, Keys.ARROW_RIGHT)
    assert decode.execute_script(f"return {T}.chosen.at") == first + 1
    press(decode, Keys.ARROW_DOWN)
    assert decode.execute_script(f"return {T}.chosen.row.kind") != "stream"
    decode.execute_script(f"report.showExecution('p0', {T}.raw.picks[0].id)")
    at_a_kernel(decode)[0].click().perform()
    press(decode, Keys.ENTER)
    name = decode.execute_script("return report.selection.name")
    row = decode.find_element("css selector", "tr.selected")
    assert name in row.text and row.is_displayed()
    browser.until(lambda: f":{name}" in decode.execute_script("return location.hash"), "the address says so")
    press(decode, Keys.ESCAPE)
    assert decode.execute_script("return report.selection") is None


def test_the_address_brings_everything_back(chrome: Any, page: Path) -> None:
    decode = opened(chrome, page)
    at_a_kernel(decode)[0].click().perform()
    press(decode, "+", "+")
    wanted = view(decode), decode.execute_script("return report.selection")
    ends = f"`t.p0=${{Math.round({T}.low)}}~${{Math.round({T}.high)}}`"
    browser.until(lambda: decode.execute_script(f"return location.hash.includes({ends})"), "the address holds the view")
    browser.until(lambda: "sel=" in decode.execute_script("return location.hash"), "the address holds the selection")
    again = opened(decode, page, decode.execute_script("return location.hash"))
    assert view(again) == pytest.approx(wanted[0], abs=1)
    assert again.execute_script("return report.selection") == wanted[1]


def test_an_execution_has_an_address(chrome: Any, page: Path) -> None:
    step = timeline("decode").steps[1]
    driver = opened(chrome, page, f"#p0-x{step.execution_id}")
    assert view(driver) == [step.low_ns, step.high_ns]
    assert f"Execution {step.execution_id} " in driver.find_element("id", "p0-time-title").text


def test_what_is_in_view_is_a_table_too(decode: Any) -> None:
    press(decode, *"+" * 6)
    decode.execute_script("document.querySelector('.listing').open = true")
    low, high = view(decode)
    shown = sum(int(((row.start_ns < high) & (row.start_ns + row.duration_ns > low)).sum()) for row in timeline("decode").rows)
    rows = "return document.querySelectorAll('.listing tbody tr').length"
    browser.until(lambda: decode.execute_script(rows) == min(shown, 300) or decode.execute_script(rows) > shown, "rows are there")


def enter(driver: Any, text: str) -> None:
    field = driver.find_element("id", "search")
    field.clear()
    field.send_keys(text)


def test_one_search_finds_findings_instructions_source_and_words_and_lights_the_timeline(decode: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    enter(decode, "kv gather")
    found = decode.execute_script("return [...document.querySelectorAll('.result')].map(e => [...e.children].map(c => c.textContent))")
    kinds = {kind for kind, *_ in found}
    assert {"finding", "instruction", "Classes"} <= kinds
    lit = decode.execute_script(f"return [...{T}.matches].map(n => {T}.raw.looks[n][4].join(' '))")
    assert lit and all("kv_gather" in facts for facts in lit)
    enter(decode, "workloads.py:110")
    names = "[...document.querySelectorAll('.result')].map(e => [e.children[0].textContent, e.children[1].textContent])"
    found = decode.execute_script(f"return {names}")
    place, first = next((at, name) for at, (kind, name) in enumerate(found) if kind == "instruction")
    decode.find_element("id", "search").send_keys(*[Keys.ARROW_DOWN] * (place + 1), Keys.ENTER)
    rows = [row for row in decode.find_elements("css selector", "tr.selected") if row.is_displayed()]
    assert rows and all(first in row.text for row in rows)
    assert not decode.find_element("id", "found").is_displayed()
    browser.until(lambda: "q=workloads.py%3A110" in decode.execute_script("return location.hash"), "the address holds the search")
    enter(decode, "no such thing")
    assert decode.find_element("id", "results-count").text == "0 found; 0 marks lit in the timeline"
    decode.find_element("id", "search").send_keys(Keys.ESCAPE)
    assert decode.execute_script(f"return {T}.matches") is None


def test_sorting_and_filters_come_back_with_the_address(chrome: Any, page: Path) -> None:
    driver = opened(chrome, page)
    table = "document.querySelector('#p0-s1 th[data-key=launches_per_execution]').closest('.tablebox')"
    driver.execute_script(f"{table}.querySelector('th[data-key=kernel_class] button').click()")
    browser.until(lambda: "kernel_class%3Aascending" in driver.execute_script("return location.hash"), "the address holds the order")
    column = f"return [...{table}.querySelectorAll('tbody th')].map(e => e.textContent)"
    wanted = driver.execute_script(column)
    again = opened(driver, page, driver.execute_script("return location.hash"))
    assert again.execute_script(column) == wanted == [*sorted(wanted[:-1]), "all"]


def test_a_folded_section_opens_where_the_address_leads(chrome: Any, page: Path) -> None:
    driver = opened(chrome, page, "#words")
    assert driver.find_element("css selector", "#words dt").is_displayed()
    assert not driver.find_element("css selector", "#p0-made dt").is_displayed()


def test_paper_shows_what_is_folded(decode: Any) -> None:
    decode.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    shut = "return [...document.querySelectorAll('details:not(.listing)')].filter(d => !d.open).length"
    assert decode.execute_script(shut) == 0
    decode.execute_script("window.dispatchEvent(new Event('afterprint'))")
    assert decode.execute_script(shut) > 3


def test_of_several_captures_one_is_shown_at_a_time(chrome: Any, tmp_path: Path) -> None:
    path = tmp_path / "two.html"
    path.write_text(render(page_of(("one", analyzed("decode")), ("two", analyzed("torch_mlp")))), encoding="utf-8")
    driver = opened(chrome, path)
    shown = "return [...document.querySelectorAll('.part')].map(p => p.offsetHeight > 0)"
    assert driver.execute_script(shown) == [True, False]
    driver.execute_script("document.querySelector('a.tab[data-part=p1]').click()")
    browser.until(lambda: driver.execute_script(shown) == [False, True], "the second one is shown")
    assert driver.find_element("css selector", "a.tab[data-part=p1]").get_attribute("aria-current") == "true"
    assert driver.execute_script("return document.documentElement.scrollHeight") < 8_000
    assert opened(driver, path, "#p0-findings").execute_script(shown) == [True, False]
    assert opened(driver, path, "#p1-time").execute_script(shown) == [False, True]
    assert browser.complaints(driver) == []


def test_captures_without_a_dump_make_a_page_that_works(chrome: Any, tmp_path: Path) -> None:
    path = tmp_path / "bare.html"
    bare = analyze(FIXTURES / "decode" / "capture.sqlite")
    path.write_text(render(page_of(("one", bare), ("two", analyzed("train")))), encoding="utf-8")
    driver = opened(chrome, path)
    assert browser.complaints(driver) == []
    assert driver.execute_script(f"return {T}.rows.some(row => row.kind === 'stream')")
