"""How the time of a report grows with the number of distinct things in a capture: measured at n, 2n and 4n of each."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from math import log
from pathlib import Path

from benchmarks import history
from benchmarks.made import Many, make_capture, make_dump
from benchmarks.measure import python, took

MOST: Mapping[str, Many] = {
    "kernels": Many(kernels=800_000),
    "names": Many(kernels=800_000, names=200_000),
    "programs": Many(kernels=400_000, programs=5_000),
    "threads": Many(kernels=400_000, threads=1_000),
    "devices": Many(kernels=400_000, devices=1_000),
    "ranges": Many(kernels=100_000, ranges=5_000_000),
}
"""What is made of each at 4n."""
INSTRUCTIONS = 200_000
SLACK = 1.25
"""Times the growth of n log n from which growth is flagged: single runs vary."""
FACTORS = (1, 2, 4)


def seconds(thing: str, factor: int, folder: Path) -> tuple[int, float]:
    """How many of a thing there are at a factor of 1, 2 or 4, and the processor seconds that the command takes."""
    if thing == "instructions":
        count = INSTRUCTIONS * factor // FACTORS[-1]
        return count, took(python("-m", "nsys_report", "modules", str(make_dump(folder / f"{thing}{factor}", count)))).cpu_s
    many = MOST[thing]
    count = getattr(many, thing) * factor // FACTORS[-1]
    capture = make_capture(folder / f"{thing}{factor}.sqlite", replace(many, **{thing: count}))
    found = took(python("profile_report.py", str(capture), "--json", str(folder / "report.json"))).cpu_s
    capture.unlink()
    return count, found


def main(only: str = "") -> None:
    """Measures every thing whose name holds `only`, prints it and adds it to the history."""
    for thing in (*MOST, "instructions"):
        if only and only not in thing:
            continue
        with tempfile.TemporaryDirectory(prefix="nsys-report-") as folder:
            found = [seconds(thing, factor, Path(folder)) for factor in FACTORS]
        grown = found[-1][1] / found[0][1]
        allowed = SLACK * found[-1][0] * log(found[-1][0]) / (found[0][0] * log(found[0][0]))
        verdict = "grows no faster than n log n" if grown <= allowed else "GROWS FASTER THAN n log n"
        shown = ", ".join(f"{count:,}: {time:.2f} s" for count, time in found)
        print(f"{thing:<13} {shown}; ×4 takes {grown:.2f} × as long: {verdict}", flush=True)
        history.append({"benchmark": f"growth: {thing}", "counts": [n for n, _ in found], "cpu_s": [round(s, 3) for _, s in found]})
