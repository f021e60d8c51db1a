"""The terminal page: widths, alignment, color, and names that are anybody's."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from nsys_report.reports.model import Column, Row, Table
from nsys_report.reports.terminal_page import render
from nsys_report.reports.terminal_table import table_lines
from tests.nsys_report.sample_report import CLASSES, report


def lines(width: int = 100, **options: object) -> list[str]:
    return render(report(**options), width).splitlines()  # type: ignore[arg-type]


def test_the_page_opens_with_the_capture_in_one_line_then_what_is_wrong_with_it() -> None:
    first, second, third, *_ = lines()
    assert first == "capture.sqlite: NVIDIA H200, nsys 2023.4.4, 14.2 ms, 3,888 kernels"
    assert second == "! 12 launches have no kernel."
    assert third == "  → Trace a shorter window."


def test_figures_are_aligned_at_their_right_end_also_beside_a_mark() -> None:
    page = lines()
    weights, gather = (next(line for line in page if line.startswith(name)) for name in ("weights", "kv_gather"))
    assert weights.index("1,783") + len("1,783") == gather.index("6,290 ▲") + len("6,290")
    assert weights.index("412 µs") + len("412 µs") == gather.index("2.00 µs") + len("2.00 µs")


def test_a_mark_is_explained_below_its_table() -> None:
    assert "▲ above the measured ceiling: served from L2, or the count is wrong" in lines()


def test_unknown_is_a_dash() -> None:
    other = next(line for line in lines() if line.startswith("other"))
    assert other.split()[-4:] == ["–", "–", "–", "–"]


def test_a_column_without_a_heading_is_not_named_where_it_does_not_fit() -> None:
    columns = (Column("part", "part", "name"), Column("bar", "", "text", drop_rank=2), Column("share", "share", "ratio", drop_rank=1))
    narrow = Table("parts", "Parts", columns, (Row(("waiting for the host", "█" * 20, 0.5)),))
    assert [line.plain for line in table_lines(narrow, 24)][-1] == "no room for: share"


def test_columns_that_do_not_fit_are_left_out_by_how_dear_they_are_and_named() -> None:
    page = lines(width=60)
    assert all(cell_len(line) <= 60 for line in page)
    assert "no room for: launches, of nominal" in page
    head = next(line for line in page if "share" in line)
    assert "measured" in head and "nominal" not in head


def test_a_long_name_is_shortened_in_its_middle_and_whole_where_there_is_room() -> None:
    name = "input_multiply_reduce_fusion_of_a_very_long_name_indeed_17"
    assert any(name in line for line in lines(width=120, names=(name,)))
    narrow = lines(width=50, names=(name,))
    assert not any(name in line for line in narrow)
    assert any(line.startswith("input_mul") and "…" in line and "_17" in line for line in narrow)


def test_only_the_first_rows_of_a_long_table_are_shown_and_the_rest_is_counted() -> None:
    page = lines(names=tuple(f"fusion.{n}" for n in range(40)), lead=3)
    assert [line.split()[0] for line in page if line.startswith("fusion")] == ["fusion.0", "fusion.1", "fusion.2"]
    assert "… 37 more of 40 rows (--top)" in page


def test_totals_are_shown_however_few_rows_are() -> None:
    short = dataclasses.replace(CLASSES, lead=1)
    assert [row.values[0] for row in short.shown()] == ["weights", "all"]


def test_plain_output_has_no_escape_sequence_and_color_has() -> None:
    assert "\x1b" not in render(report(), 100)
    assert "\x1b[" in render(report(), 100, color=True)


@pytest.mark.parametrize("name", ["\x1b[31mred\x1b[0m", "line\nbreak", "[bold]markup[/bold]", "abc\u202egnp", ":smile:"])
def test_a_hostile_name_is_shown_as_text(name: str) -> None:
    page = render(report(names=(name,)), 100)
    assert "\x1b" not in page and "\u202e" not in page
    assert ("[bold]markup[/bold]" in page) == (name == "[bold]markup[/bold]")
    assert len(page.splitlines()) == len(render(report(names=("fusion.1",)), 100).splitlines())


@settings(deadline=None, max_examples=50)
@given(st.integers(min_value=40, max_value=200), st.lists(st.text(min_size=1, max_size=90), min_size=1, max_size=3))
def test_no_line_is_wider_than_the_terminal(width: int, names: list[str]) -> None:
    tables_only = [line for line in render(report(names=tuple(names)), width).splitlines() if not line.startswith("capture")]
    assert max(map(cell_len, tables_only)) <= width


def test_a_list_loses_its_last_things_and_not_the_middle_of_two() -> None:
    columns = (Column("category", "where", "text"), Column("parts", "mostly", "name"))
    rows = (
        Row(("floor", "weights 171 µs, kv cache 2.94 µs, other 1.00 µs")),
        Row(("host", "a_name_that_is_longer_than_the_room_for_it_here")),
    )
    page = "\n".join(line.plain for line in table_lines(Table("budget", "Step budget", columns, rows), 48))
    assert "weights 171 µs, kv cache 2.94 µs" in page and "other" not in page
    assert "a_name_that_is_l" in page and "…" in page


def test_what_a_program_has_none_of_takes_no_column() -> None:
    columns = (Column("name", "class", "text"), Column("kv_read_bytes", "KV bytes read", "bytes"), Column("share", "share", "ratio"))
    without, one = (Table("t", "T", columns, (Row(("other", 0, 0.0)), Row(("all", read, 1.0)))) for read in (None, 12))
    assert without.telling() == (0, 2)  # a share of nothing is a figure; no bytes of caches in a program without caches are none
    assert one.telling() == (0, 1, 2)
