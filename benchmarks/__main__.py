"""Reports of long captures side by side with the raw read of their kernels: `python -m benchmarks`.

Makes a capture by repeating a fixture with jitter (or takes --capture), and prints for each command its seconds, how many times the raw
read that is, and its memory. Seconds are of the quickest of --times runs, those of the raw read taken right before each. `--growth` asks
instead how the time grows with the number of distinct things (benchmarks.growth). Each run adds a line to benchmarks/history.jsonl.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import growth, history
from benchmarks.captures import repeat, without_ranges
from benchmarks.measure import ROOT, Took, best, python
from benchmarks.peers import peers
from benchmarks.raw_read import raw_read

FIXTURES = ROOT / "fixtures"


def commands(capture: Path, dump: Path | None, folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Name and command of everything that is measured."""
    report = python("profile_report.py", str(capture), *(("--xla-dump", str(dump)) if dump is not None else ()))
    json = [*report, "--json", str(folder / "report.json")]
    outputs = ("html", "perfetto", "csv", "tables")
    everything = [part for name in outputs for part in (f"--{name}", str(folder / (name if name in ("csv", "tables") else f"out.{name}")))]
    yield "check", python("-m", "nsys_report", "check", str(capture))
    yield "report, JSON", json
    yield "report, all outputs", [*json, *everything]
    yield from peers(capture, folder)


def line(name: str, one: Took, raw: Took, kernels: int) -> str:
    """A row of the printed table."""
    return (
        f"{name:<20} {one.wall_s:7.2f} s {one.wall_s / raw.wall_s:6.2f} × raw {one.cpu_s:7.2f} s of processors "
        f"{one.peak_bytes / 1e6:7,.0f} MB {one.peak_bytes / kernels:6.0f} bytes a kernel"
    )


def side_by_side(name: str, capture: Path, dump: Path | None, times: int, only: str) -> None:
    """Measures everything on one capture, prints it, and adds it to the history."""
    kernels = raw_read(capture)
    reading = python("-m", "benchmarks.raw_read", str(capture))
    print(f"{name}: {kernels:,} kernels, {capture.stat().st_size / 1e6:,.0f} MB", flush=True)
    with tempfile.TemporaryDirectory(prefix="nsys-report-") as folder:
        for label, command in commands(capture, dump, Path(folder)):
            if only and only not in label:
                continue
            raw, one = best(reading, times), best(command, times)
            print(line(label, one, raw, kernels), flush=True)
            benchmark = f"{name}: {label}"
            figures = {
                "benchmark": benchmark,
                "kernels": kernels,
                "wall_s": round(one.wall_s, 3),
                "cpu_s": round(one.cpu_s, 3),
                "raw_wall_s": round(raw.wall_s, 3),
                "raw_cpu_s": round(raw.cpu_s, 3),
                "times_raw": round(one.wall_s / raw.wall_s, 3),
                "peak_bytes": one.peak_bytes,
            }
            before = history.read(benchmark)[-1:]
            history.append(figures)
            for last in before:
                print(f"{'':<20} before: {last['times_raw']:.2f} × raw, {last['peak_bytes'] / 1e6:,.0f} MB at {last['commit']}", flush=True)


def main() -> None:
    """Makes the captures and measures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fixture", default="decode", help="the fixture that is repeated (decode)")
    parser.add_argument("--kernels", type=int, default=2_100_000, help="about how many kernels to make of it (2,100,000)")
    parser.add_argument("--blind", action="store_true", help="without XLA's NVTX ranges")
    parser.add_argument("--capture", type=Path, help="a capture to measure instead, with --xla-dump")
    parser.add_argument("--xla-dump", type=Path)
    parser.add_argument("--times", type=int, default=3, help="runs of each, of which the quickest counts (3)")
    parser.add_argument("--only", default="", help="commands whose name holds this")
    parser.add_argument("--growth", action="store_true", help="how time grows with distinct names, programs, threads, devices, ranges")
    given = parser.parse_args()
    if given.growth:
        growth.main(given.only)
        return
    with tempfile.TemporaryDirectory(prefix="nsys-report-") as folder:
        if given.capture is not None:
            side_by_side(given.capture.parent.name, given.capture, given.xla_dump, given.times, given.only)
            return
        source, dump = FIXTURES / given.fixture / "capture.sqlite", FIXTURES / given.fixture / "xla_dump"
        if given.blind:
            without_ranges(source, Path(folder) / "blind.sqlite")
            source = Path(folder) / "blind.sqlite"
        capture = Path(folder) / "capture.sqlite"
        repeat(source, capture, max(given.kernels // raw_read(source), 1))
        name = given.fixture + (" blind" if given.blind else "")
        side_by_side(name, capture, dump if dump.is_dir() else None, given.times, given.only)


if __name__ == "__main__":
    main()
