"""Numbers in sentences: the rounding rules once, for every stage that writes words and for every page.

Three significant digits, decimal prefixes (1 kB is 1,000 bytes, as in GB/s); what rounds to nothing or to everything without being it
says so (`<0.1 %`, `>99.9 %`).
"""

from __future__ import annotations


def three_digits(value: float) -> str:
    """A number to three significant digits with at most three decimals, its thousands apart; larger whole parts stay whole."""
    size = abs(value)
    if value and size < 0.0005:
        return "<0.001" if value > 0 else ">-0.001"
    for limit, decimals in ((99.95, 0), (9.995, 1), (0.9995, 2)):
        if size >= limit:
            return f"{value:,.{decimals}f}"
    return f"{value:.3f}" if value else "0"


def scaled(value: float, steps: tuple[tuple[float, str], ...]) -> str:
    """A number in the largest of `steps` (divisor, suffix; smallest first) that leaves 1 or more after rounding; the smallest is whole."""
    divisor, suffix = steps[0]
    for wider, name in steps[1:]:
        if abs(value) / wider < 0.9995:
            break
        divisor, suffix = wider, name
    if divisor == 1:
        return f"{value:,.0f} {suffix}" if abs(value) >= 0.5 else f"<1 {suffix}"
    return f"{three_digits(value / divisor)} {suffix}"


def duration(ns: float) -> str:
    """Nanoseconds as ns, µs, ms or s."""
    return scaled(ns, ((1, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s"))) if ns else "0 ns"


def size(count: float) -> str:
    """Bytes as B, kB, MB, GB or TB."""
    return scaled(count, ((1, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB"))) if count else "0 B"


def share(ratio: float) -> str:
    """A ratio as percent with one decimal; close to, but not, nothing or everything is said so."""
    if 0 < ratio < 0.0005:
        return "<0.1 %"
    if 0.9995 <= ratio < 1:
        return ">99.9 %"
    return f"{ratio * 100:,.1f} %"


def count(number: float) -> str:
    """A number of things: whole where it is whole, else one decimal (a mean or a median of counts)."""
    if isinstance(number, int):  # of any length: a float cannot hold every one
        return f"{number:,}"
    return f"{number:,.0f}" if float(number).is_integer() else f"{number:,.1f}"


def things(number: float, one: str) -> str:
    """A number of things with their name, which takes an s unless there is exactly one."""
    return f"{count(number)} {one}{'' if number == 1 else 's'}"
