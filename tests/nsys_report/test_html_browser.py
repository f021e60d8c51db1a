"""The page in a browser with the network off: it draws, sorts, filters, opens, zooms, and complains of nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nsys_report.reports.export import document
from nsys_report.reports.html.page import render
from nsys_report.units import visible
from tests.nsys_report import browser
from tests.nsys_report.pages import FIXTURES, HOSTILE, analyzed, html_of, page_of, with_hostile_names

pytestmark = [
    pytest.mark.skipif(browser.why_not() is not None, reason=str(browser.why_not())),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
NAMES = sorted(p.parent.name for p in FIXTURES.glob("*/capture.sqlite"))


@pytest.fixture(scope="module")
def chrome() -> Iterator[Any]:
    with browser.driven() as driver:
        yield driver


@pytest.fixture
def decode(chrome: Any, tmp_path: Path) -> Any:
    """The decode page, opened."""
    return show(chrome, tmp_path, html_of("decode"))


def show(chrome: Any, folder: Path, text: str) -> Any:
    path = folder / "page.html"
    path.write_text(text, encoding="utf-8")
    browser.opened(chrome, path)
    return chrome


def texts(driver: Any, selector: str) -> list[str]:
    script = "return Array.from(document.querySelectorAll(arguments[0])).filter(e => !e.closest('[hidden]')).map(e => e.textContent.trim())"
    return list(driver.execute_script(script, selector))


def table_id(driver: Any, title: str) -> str:
    script = "return Array.from(document.querySelectorAll('.tablebox')).find(b => b.querySelector('h3')?.textContent === arguments[0]).id"
    return str(driver.execute_script(script, title))


def enter(driver: Any, selector: str, value: str) -> None:
    """Puts a value into a field, as a person would."""
    script = "const e = document.querySelector(arguments[0]); e.value = arguments[1]; e.dispatchEvent(new Event('input', {bubbles: true}))"
    driver.execute_script(script, selector, value)


@pytest.mark.parametrize("name", NAMES)
def test_every_page_draws_without_complaint_or_request(chrome: Any, tmp_path: Path, name: str) -> None:
    driver = show(chrome, tmp_path, html_of(name))
    assert browser.complaints(driver) == []
    assert driver.execute_script("return performance.getEntriesByType('resource').map(e => e.name)") == []
    drawn = driver.execute_script("return Array.from(document.querySelectorAll('.plot, .timeline')).map(p => p.children.length)")
    assert drawn and all(drawn)
    assert driver.execute_script("return document.documentElement.scrollWidth") <= 1280


def test_a_narrow_screen_scrolls_down_only(tmp_path: Path) -> None:
    with browser.driven(400, 800) as driver:
        for name in ("decode", "torch_mlp"):
            show(driver, tmp_path, html_of(name))
            assert driver.execute_script("return document.documentElement.scrollWidth") == 400
            assert browser.complaints(driver) == []


def test_tables_show_their_figures_at_every_width(tmp_path: Path) -> None:
    for width, wanted in ((1280, "flops_per_s"), (400, "typical_ns")):
        with browser.driven(width, 800) as driver:
            show(driver, tmp_path, html_of("decode"))
            boxes = [table_id(driver, title) for title in ("Classes", "Instructions by time")]
            ends = [driver.execute_script(RIGHT_ENDS, box, wanted) for box in boxes]
            assert all(column <= visible for column, visible in ends), (width, ends)
            more = driver.execute_script("return document.querySelectorAll('.scroll[data-more]').length")
            assert bool(more) == any(driver.execute_script(IS_CUT)), width


RIGHT_ENDS = """
const box = document.getElementById(arguments[0]), heading = box.querySelector(`th[data-key=${arguments[1]}]`);
return [heading.getBoundingClientRect().right, box.querySelector('.scroll').getBoundingClientRect().right];
"""
IS_CUT = "return Array.from(document.querySelectorAll('.scroll')).map(s => s.scrollWidth - s.clientWidth > 4)"


def test_a_chart_is_one_stop_of_the_tab_key(decode: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    decode.execute_script("document.querySelector('[data-zoom=all]').focus()")
    where = []
    for _ in range(2):
        ActionChains(decode).send_keys(Keys.TAB).perform()
        where.append(decode.execute_script("return document.activeElement.id || document.activeElement.closest('[id]').id"))
    assert where[0] == "p0-time" and decode.execute_script("return !document.activeElement.closest('.timeline')"), where


def test_a_table_sorts_by_figures_and_by_words_with_the_total_last(decode: Any) -> None:
    classes = table_id(decode, "Classes")
    column = f"#{classes} tbody tr > :first-child"
    heading = decode.find_element("css selector", f"#{classes} th[data-key=launches_per_execution] button")
    heading.click()
    launches = texts(decode, f"#{classes} tbody tr")
    assert heading.find_element("xpath", "..").get_attribute("aria-sort") == "descending"
    first = analyzed("decode").classes.query("hlo_module == 'jit_decode_step'").sort_values("launches_per_execution", ascending=False)
    assert texts(decode, column) == [*first.kernel_class, "all"] and len(launches) == 6
    decode.find_element("css selector", f"#{classes} th[data-key=kernel_class] button").click()
    assert texts(decode, column) == [*sorted(first.kernel_class), "all"]


def test_a_table_is_searched_and_filtered(decode: Any) -> None:
    instructions = table_id(decode, "Instructions by time")
    rows = f"#{instructions} tbody tr:not([hidden])"
    assert len(texts(decode, rows)) == 162
    decode.find_element("css selector", f"#{instructions} input[type=search]").send_keys("gemm_fusion_dot.10")
    found = texts(decode, f"{rows} .open")
    assert found and all(name.startswith("gemm_fusion_dot.10") for name in found)
    assert texts(decode, f"#{instructions} .found") == [f"{len(found)} of 162 rows"]
    enter(decode, f"#{instructions} input[type=search]", "")
    enter(decode, f"#{instructions} .tools select", "kv_gather")
    assert len(texts(decode, f"{rows} .open")) == 6


def test_an_instruction_opens_with_its_text_and_source(decode: Any) -> None:
    instructions = table_id(decode, "Instructions by time")
    button = decode.find_element("css selector", f"#{instructions} .open")
    decode.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
    button.click()
    assert button.get_attribute("aria-expanded") == "true"
    shown = decode.find_element("css selector", f"#{instructions} tr.detail")
    assert shown.find_element("css selector", "pre").text.startswith(f"%{button.text} = ")
    assert "workloads.py:" in shown.text and "operation" in shown.text
    button.click()
    assert decode.find_elements("css selector", f"#{instructions} tr.detail") == []


def test_numbers_equal_the_json(decode: Any) -> None:
    section = next(s for s in document(analyzed("decode").report())["captures"][0]["sections"] if s["module"])
    for title, key in (("Classes", "classes"), ("Instructions by time", "instructions"), ("Step budget", "budget")):
        table = section["tables"][key]
        box = table_id(decode, title)
        rows = "Array.from(document.querySelectorAll(`#${arguments[0]} tbody tr`))"
        keys = decode.execute_script("return Array.from(document.querySelectorAll(`#${arguments[0]} thead th`), h => h.dataset.key)", box)
        script = f"return {rows}.map(r => Array.from(r.cells, c => c.textContent))"
        places = [i for i, k in enumerate(keys) if k]
        columns = [[c["key"] for c in table["columns"]].index(keys[i]) for i in places]
        shown = [[cells[i] for i in places] for cells in decode.execute_script(script, box)]
        assert shown == [[texts[c] for c in columns] for texts in table["text"]]


def test_the_theme_changes_the_charts_too(decode: Any) -> None:
    ground = "return [...document.querySelector('#p0-time canvas').getContext('2d').getImageData(4, 40, 1, 1).data].slice(0, 3)"
    browser.until(lambda: decode.execute_script(ground) == [255, 255, 255], "it is light")
    decode.find_element("id", "theme").click()
    assert decode.execute_script("return document.documentElement.dataset.theme") == "dark"
    browser.until(lambda: decode.execute_script(ground) == [0x1D, 0x21, 0x27], "it is dark")
    browser.complaints(decode)  # Chromium's own about the pixels that are read here


def test_hostile_names_run_nothing(chrome: Any, tmp_path: Path) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    page = render(page_of((f"{HOSTILE}.sqlite", with_hostile_names(analyzed("threads")))))
    driver = show(chrome, tmp_path, page)
    for button in driver.find_elements("css selector", ".open")[:3]:
        driver.execute_script("arguments[0].click()", button)
    driver.execute_script("document.getElementById('p0-time').focus()")
    ActionChains(driver).send_keys(Keys.ARROW_RIGHT).perform()
    driver.execute_script("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert driver.execute_script("return window.attacked") is None
    assert driver.execute_script("return document.images.length") == 0
    assert visible(HOSTILE) in driver.find_element("id", "p0-time-said").text
    assert browser.complaints(driver) == []


def test_a_script_that_is_not_the_pages_own_does_not_run(chrome: Any, tmp_path: Path) -> None:
    text = html_of("torch_mlp").replace("</body>", "<script>window.attacked = 1</script></body>")
    driver = show(chrome, tmp_path, text)
    assert driver.execute_script("return window.attacked") is None
    assert any("Content Security Policy" in line for line in browser.complaints(driver))


def test_hostile_texts_of_sqlite_are_shown(chrome: Any, tmp_path: Path) -> None:
    """The texts that a capture can hold come through the whole program, from the database to the screen."""
    from nsys_report.notebook import analyze
    from tests.nsys_report.pages import hostile_capture

    made = hostile_capture(tmp_path, "torch_mlp")
    with sqlite3.connect(made / "capture.sqlite") as database:
        assert database.execute("SELECT count(*) FROM StringIds WHERE value LIKE '%attacked%'").fetchone()[0] > 0
    driver = show(chrome, tmp_path, render(page_of(("hostile", analyze(made / "capture.sqlite")))))
    assert any(visible(HOSTILE) in name for name in texts(driver, "tbody bdi"))
    assert driver.execute_script("return window.attacked") is None
    assert browser.complaints(driver) == []


def test_a_timeline_by_itself_opens_on_its_execution_and_zooms(chrome: Any, tmp_path: Path) -> None:
    browser.opened(chrome, analyzed("decode").timeline(7).save(tmp_path / "timeline.html"))
    assert browser.complaints(chrome) == []
    (title,) = texts(chrome, "#p0-time-title")
    assert title.startswith("Execution 7 of ")
    chrome.find_element("css selector", "button[data-zoom=in]").click()
    assert browser.complaints(chrome) == []
