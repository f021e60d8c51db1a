"""Numbers to words: values worked out by hand, and what holds for every number."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsys_report import units
from nsys_report.units import LONGEST_WORD, escaped, visible
from nsys_report.words import three_digits


@pytest.mark.parametrize(
    ("ns", "expected"),
    [
        (0, "0 ns"),
        (1, "1 ns"),
        (0.2, "<1 ns"),
        (812, "812 ns"),
        (999.6, "1.00 µs"),
        (1_000, "1.00 µs"),
        (31_249, "31.2 µs"),
        (412_345, "412 µs"),
        (999_600, "1.00 ms"),
        (4_711_000, "4.71 ms"),
        (227_500_000, "228 ms"),
        (1_271e9, "1,271 s"),
        (-5_000, "-5.00 µs"),
    ],
)
def test_durations(ns: float, expected: str) -> None:
    assert units.duration(ns) == expected


@pytest.mark.parametrize(
    ("count", "expected"),
    [(0, "0 B"), (812, "812 B"), (24_576, "24.6 kB"), (735_109_120, "735 MB"), (9_926_230_016, "9.93 GB"), (53e9, "53.0 GB")],
)
def test_sizes_are_decimal(count: int, expected: str) -> None:
    assert units.size(count) == expected


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [(0, "0.0 %"), (0.0004, "<0.1 %"), (0.936, "93.6 %"), (1.0, "100.0 %"), (0.99999, ">99.9 %"), (1.042, "104.2 %"), (12.5, "1,250.0 %")],
)
def test_shares(ratio: float, expected: str) -> None:
    assert units.share(ratio) == expected


def test_bandwidth_and_compute_leave_their_unit_to_the_heading() -> None:
    assert units.cell_text("bytes_per_s", 4_814_304_000_000) == "4,814"
    assert units.cell_text("bytes_per_s", 233e9) == "233"
    assert units.cell_text("flops_per_s", 3.571e12) == "3.57"
    assert units.cell_text("flops_per_s", 1e8) == "<0.001"
    assert units.phrase("bytes_per_s", 233e9) == "233 GB/s"


def test_counts_confidence_and_moments() -> None:
    assert units.count(1_234_567) == "1,234,567"
    assert units.count(2.5) == "2.5"
    assert units.confidence(1.0) == "1.00"
    assert units.confidence(0.9999) == "0.99"
    assert units.confidence(0.29) == "0.29"
    assert units.moment(1_234_567_890) == "1.234568 s"


@pytest.mark.parametrize("unit", sorted(units.UNITS))
def test_unknown_is_a_dash_and_no_zero(unit: str) -> None:
    assert units.cell_text(unit, None) == units.UNKNOWN
    assert units.phrase(unit, None) == units.UNKNOWN


@given(st.floats(min_value=1, max_value=1e17))
def test_a_duration_never_shows_a_thousand_of_a_unit_that_has_a_larger_one(ns: float) -> None:
    number, unit = units.duration(ns).split()
    assert unit == "s" or float(number.replace(",", "")) < 1000


@given(st.floats(min_value=1e-3, max_value=1e15))
def test_three_digits_stay_within_half_a_percent_of_the_value(value: float) -> None:
    assert float(three_digits(value).replace(",", "")) == pytest.approx(value, rel=5.1e-3, abs=5e-4)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("loop_fusion.3", "loop_fusion.3"),
        ("größe µ 重み", "größe µ 重み"),
        ("a\nb\tc", "a\\x0ab\\x09c"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("abc\u202etxt", "abc\\u202etxt"),
        ("lone \ud800 surrogate", "lone \\ud800 surrogate"),
    ],
)
def test_what_could_steer_a_terminal_is_shown(text: str, expected: str) -> None:
    assert units.visible(text) == expected


@given(st.text(min_size=1, max_size=80), st.integers(min_value=1, max_value=80))
def test_a_shortened_name_fits_and_keeps_its_ends(text: str, width: int) -> None:
    short = units.shorten(text, width)
    assert len(short) <= width
    assert short == text if len(text) <= width else short[0] == text[0]


def test_the_middle_of_a_long_name_goes() -> None:
    assert units.shorten("input_reduce_fusion_with_long_name_17", 15) == "input_r…name_17"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("loop_add_fusion_3", "loop_add_fusion_3"),
        ("void at::native::reduce_kernel<(int)512, (int)1>(T3)", "at::native::reduce_kernel<(int)512, (int)1>"),
        ("f(unsigned char *, long (*)(int), long)", "f"),
        ("unbalanced)", "unbalanced)"),
    ],
)
def test_a_kernel_name_loses_its_parameters_and_keeps_its_template(name: str, expected: str) -> None:
    assert units.cell_text("kernel", name) == expected


@pytest.mark.parametrize("point", [0x200B, 0xAD, 0x2060, 0xFE0F, 0x200D, 0x202E])
def test_letters_that_take_no_room_are_shown(point: int) -> None:
    assert visible(f"a{chr(point)}b") == (f"a\\u{point:04x}b" if point > 0xFF else f"a\\x{point:02x}b")


def test_a_word_without_end_is_cut_in_its_middle() -> None:
    shown = visible(f"program {'x' * 100_000}y runs")
    assert shown.startswith("program xxx") and shown.endswith("xy runs")
    assert len(shown) == len("program ") + LONGEST_WORD + len(" runs")
    assert visible("word " * 1000) == "word " * 1000
    assert escaped("x" * 1000) == "x" * 1000, "documents hold it whole"
