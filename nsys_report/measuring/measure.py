"""Runs the measuring kernels and makes an entry of the table of GPUs from what they reach."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

import numpy as np

from nsys_report.measuring.backends import Backend, Work

KINDS = ("bf16", "tf32", "f32")
"""Operand types whose products are measured."""

SAMPLES, WARM_SECONDS, SAMPLE_SECONDS = 15, 2.0, 0.05
"""Samples of each kernel; seconds of work before the first, since an idle GPU clocks down; least length of a sample."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate per second over samples: median, least and most."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one GPU reached. Bandwidths in bytes/s; `copy` counts reads plus writes; products in flops/s by type."""

    gpu: str
    backend: str
    day: str
    byte_count: int
    size: int
    read: Rate
    write: Rate
    copy: Rate
    products: dict[str, Rate]


def measure(
    backend: Backend, byte_count: int = 1 << 30, size: int = 8192, say: Callable[[str], None] = lambda text: None, today: date | None = None
) -> Measurement:
    """Measures the GPU behind a backend: streams that read, write and copy `byte_count` bytes, and products of `size` squared."""
    say("warming up")
    read = backend.read(byte_count)
    _run_for(backend, read, WARM_SECONDS)
    say("streaming read")
    reading = _rate(backend, read, byte_count)
    say("streaming write")
    writing = _rate(backend, backend.write(byte_count), byte_count)
    say("streaming copy")
    copying = _rate(backend, backend.copy(byte_count), byte_count)
    products = {}
    for kind in KINDS:
        work = backend.product(size, kind)
        if work is not None:
            say(f"{kind} product")
            products[kind] = _rate(backend, work, 2 * size**3)
    return Measurement(
        backend.device(), backend.name, (today or date.today()).isoformat(), byte_count, size, reading, writing, copying, products
    )


def _rate(backend: Backend, work: Work, amount: float) -> Rate:
    """The rate at which `work` gets through `amount` units."""
    backend.wait(work())
    once = _timed(backend, work, 1)
    count = max(1, round(SAMPLE_SECONDS / max(once, 1e-7)))
    rates = np.array([amount * count / _timed(backend, work, count) for _ in range(SAMPLES)])
    return Rate(float(np.median(rates)), float(rates.min()), float(rates.max()))


def _timed(backend: Backend, work: Work, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count - 1):
        work()
    backend.wait(work())
    return max(time.perf_counter() - start, 1e-9)


def _run_for(backend: Backend, work: Work, seconds: float) -> None:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        backend.wait(work())


def entry_text(found: Measurement) -> str:
    """The measurement as TOML, an entry that analysis.ceilings.read_table takes."""
    amount = f"{found.byte_count / 2**30:g} GiB"
    streams = (
        ("measured", found.copy, f"a streaming copy, reads plus writes, of {amount}"),
        ("read", found.read, f"a streaming read of {amount}"),
        ("write", found.write, f"a streaming write of {amount}"),
    )
    lines = [
        "[[gpu]]",
        f"name = {_quoted(found.gpu)}",
        f"match = [{_quoted('^' + re.escape(found.gpu) + '$')}]",
    ]
    for name, rate, way in streams:
        lines += [f"[gpu.{name}]", *_figures("gb_per_s", rate, 1e9), *_origin(found, way)]
    for kind, rate in found.products.items():
        way = f"product of {found.size} cubed on random data"
        lines += [f"[gpu.compute.{kind}]", *_figures("tflops", rate, 1e12), 'kind = "measured"', *_origin(found, way)]
    return "\n".join(lines) + "\n"


def _figures(name: str, rate: Rate, scale: float) -> list[str]:
    return [f"{key} = {value / scale:.1f}" for key, value in ((name, rate.median), ("low", rate.low), ("high", rate.high))]


def _origin(found: Measurement, way: str) -> list[str]:
    """When, how and by what a figure was measured."""
    method = f"{way} with {found.backend}, median of {SAMPLES}"
    return [f"date = {_quoted(found.day)}", f"method = {_quoted(method)}", 'source = "nsys-report ceilings measure"']


def _quoted(text: str) -> str:
    """A TOML basic string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in escaped) + '"'


def with_entry(existing: str, gpu: str, entry: str) -> str:
    """A table of GPUs as text with this entry, in place of an earlier one for the same GPU."""
    blocks = re.split(r"(?m)^(?=\[\[gpu\]\])", existing)
    kept = [b for b in blocks if f"name = {_quoted(gpu)}\n" not in b]
    text = "".join(kept)
    return text + ("\n" if text and not text.endswith("\n\n") else "") + entry
