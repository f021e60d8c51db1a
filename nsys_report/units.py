"""Numbers to words: one function per unit, the rounding rules once.

Three significant digits, decimal prefixes (1 kB is 1,000 bytes, as in GB/s), a thin rule for the rest: unknown is a dash, never 0;
what rounds to nothing or to everything without being it says so (`<0.1 %`, `>99.9 %`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from nsys_report.words import count as count
from nsys_report.words import duration as duration
from nsys_report.words import scaled, three_digits
from nsys_report.words import share as share
from nsys_report.words import size as size
from nsys_report.words import things as things

Value = str | int | float | bool | None
"""What a cell of a report can hold."""

UNKNOWN = "–"
"""The word for a value that nobody knows."""


def bandwidth(bytes_per_s: float) -> str:
    """Bytes a second in GB/s, without the unit (the heading has it)."""
    return three_digits(bytes_per_s / 1e9)


def compute(flops_per_s: float) -> str:
    """Floating-point operations a second in TFLOPS, without the unit (the heading has it)."""
    return three_digits(flops_per_s / 1e12)


def operations(flops: float) -> str:
    """Floating-point operations as FLOP, kFLOP, MFLOP, GFLOP, TFLOP or PFLOP."""
    prefixes = ((1, "FLOP"), (1e3, "kFLOP"), (1e6, "MFLOP"), (1e9, "GFLOP"), (1e12, "TFLOP"), (1e15, "PFLOP"))
    return scaled(flops, prefixes) if flops else "0 FLOP"


def rate(per_s: float) -> str:
    """A number of things a second, without the unit."""
    return three_digits(per_s)


def change(ns: float) -> str:
    """A difference of times with its sign, such as `+194 µs`."""
    return f"{'+' if ns > 0 else '−' if ns < 0 else '±'}{duration(abs(ns))}"


def change_share(ratio: float) -> str:
    """A difference as a share with its sign, such as `+35.1 %`."""
    return f"{'+' if ratio > 0 else '−' if ratio < 0 else '±'}{share(abs(ratio))}"


def moment(ns: float) -> str:
    """A time since the capture began, in seconds to the microsecond."""
    return f"{ns / 1e9:,.6f} s"


def confidence(value: float) -> str:
    """A confidence from 0 to 1 with two decimals; rounded down, so that only certainty reads 1.00."""
    return f"{int(value * 100 + 1e-9) / 100:.2f}"


def kernel(name: str) -> str:
    """A kernel's name without return type and parameters; template arguments stay, they tell kernels apart."""
    if not name.endswith(")"):
        return name
    depth = 0
    for at in range(len(name) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(name[at], 0)
        if depth == 0:
            return name[:at].removeprefix("void ") or name
    return name


def yes_no(value: Value) -> str:
    """A flag as a word."""
    return "yes" if value else "no"


@dataclass(frozen=True, slots=True)
class Unit:
    """How values of one unit are written; `heading` is the part of the unit that stands in the heading and not in the cell."""

    text: Callable[..., str]
    heading: str = ""
    is_number: bool = True


SHORTENED = frozenset({"name", "kernel"})
"""Units whose words may be shortened in the middle."""

UNITS: dict[str, Unit] = {
    "text": Unit(str, is_number=False),
    "name": Unit(str, is_number=False),
    "kernel": Unit(kernel, is_number=False),
    "flag": Unit(yes_no, is_number=False),
    "number": Unit(str),
    "count": Unit(count),
    "ns": Unit(duration),
    "change_ns": Unit(change),
    "change_ratio": Unit(change_share),
    "moment": Unit(moment),
    "bytes": Unit(size),
    "ratio": Unit(share),
    "bytes_per_s": Unit(bandwidth, "GB/s"),
    "flops_per_s": Unit(compute, "TFLOPS"),
    "flops": Unit(operations),
    "per_s": Unit(rate, "/s"),
    "rate": Unit(rate),
    "confidence": Unit(confidence),
}
"""Every unit a column or fact of a report can have. `number` is an id, `rate` a number a second whose name says so."""


def cell_text(unit: str, value: Value) -> str:
    """A value in words, as every page shows it; unknown is a dash. Raises KeyError for a unit that is not in UNITS."""
    return UNKNOWN if value is None else visible(UNITS[unit].text(value))


def phrase(unit: str, value: Value) -> str:
    """A value in words with its whole unit, for sentences and headers."""
    heading = UNITS[unit].heading
    return cell_text(unit, value) + (f" {heading}" if heading and value is not None else "")


_HIDDEN = {
    *range(0x20), 0x7F, *range(0x80, 0xA0), 0xAD, 0x34F, 0x61C, *range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070),
    *range(0xFE00, 0xFE10), 0xFEFF, *range(0xFFF9, 0xFFFC),
}  # fmt: skip
"""Controls, and what takes no room on a page: joiners, soft hyphens, writing directions, variants."""
_ESCAPES = {point: f"\\x{point:02x}" if point < 0x100 else f"\\u{point:04x}" for point in _HIDDEN}


LONGEST_WORD = 200
"""Letters of a word on a page; documents hold it whole."""
_LONG_WORD = re.compile(rf"\S{{{LONGEST_WORD + 1},}}")


def visible(text: str) -> str:
    """Text fit to show: as escaped, with words of any length cut in their middle. Names in captures and dumps are anybody's."""
    return escaped(_LONG_WORD.sub(lambda match: shorten(match[0], LONGEST_WORD), text) if len(text) > LONGEST_WORD else text)


def escaped(text: str) -> str:
    """Text in which control characters, writing-direction marks and what takes no room show as escapes."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_ESCAPES.get(ord(letter), letter if not 0xD800 <= ord(letter) < 0xE000 else f"\\u{ord(letter):04x}") for letter in text)


def shorten(text: str, width: int) -> str:
    """Text of at most `width` characters, its middle left out: the ends of kernel and instruction names tell them apart."""
    if len(text) <= width:
        return text
    if width < 3:
        return text[:width]
    tail = (width - 1) // 2
    return text[: width - 1 - tail] + "…" + text[len(text) - tail :]
