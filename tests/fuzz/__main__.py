"""`python -m tests.fuzz --cases 5000 [--of captures|dumps] [--seed N] [--first N] [--jobs N] [--out DIR]`: each case that fails is left
in DIR."""

from __future__ import annotations

import argparse
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from tests.fuzz.cases import ALL, KINDS, Case, run_case

MOST_KILOBYTES = 2_000_000


def main() -> int:
    """Runs the cases that are asked for; 1 where one failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--of", choices=(ALL, *KINDS), default=ALL)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("fuzz-failures"))
    asked = parser.parse_args()
    began, failed, kinds = time.monotonic(), 0, Counter[str]()
    one = partial(_one, seed=asked.seed, of=asked.of, out=asked.out)
    with ProcessPoolExecutor(asked.jobs) as pool:
        for number, case in zip(
            numbers := range(asked.first, asked.first + asked.cases), pool.map(one, numbers, chunksize=20), strict=True
        ):
            kinds["a report" if not case.message else "a message"] += 1
            if case.wrong:
                failed += 1
                print(f"{number} {_said(case)}", flush=True)
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"{asked.cases} cases in {time.monotonic() - began:.0f} s, {failed} failed, {dict(kinds)}, {memory / 1e6:.2f} GB at most")
    return 1 if failed or memory > MOST_KILOBYTES else 0


def _one(number: int, seed: int, of: str, out: Path) -> Case:
    with tempfile.TemporaryDirectory() as folder:
        case = run_case(number, Path(folder), seed, of)
        if case.wrong:
            kept = out / f"case_{seed}_{of}_{number}"
            shutil.copytree(folder, kept, dirs_exist_ok=True)
            (kept / "what.txt").write_text(_said(case))
    return case


def _said(case: Case) -> str:
    return f"{case.fixture}: {'; '.join(case.done)}\n{case.wrong}\n"


if __name__ == "__main__":
    sys.exit(main())
