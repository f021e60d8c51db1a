"""Costs that no launch can have: wrong sizes in the text make them, and sums of them would overflow 64 bits."""

from __future__ import annotations

MOST_BYTES, MOST_FLOPS = 1 << 50, 1 << 56
"""A launch over a petabyte, or of over a minute at 1,000 TFLOPS: no GPU does either."""
_BYTES = ("bytes_accessed", "weight_bytes", "kv_read_bytes", "kv_write_bytes", "bytes_upper")
_MOST = {**dict.fromkeys(_BYTES, MOST_BYTES), "flops": MOST_FLOPS}


def without_impossible(row: dict[str, object]) -> dict[str, object]:
    """A launch's costs, those that cannot be as unknown: all its bytes where one count of them is."""
    beyond = {name for name, most in _MOST.items() if isinstance(value := row.get(name), int) and not 0 <= value <= most}
    if not beyond:
        return row
    unknown = {*beyond, *(_BYTES if beyond & {*_BYTES} else ())}
    return row | dict.fromkeys(unknown) | {"bytes_note": "more than any launch can move or compute", "cost_source": "unknown"}
