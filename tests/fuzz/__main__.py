"""`python -m tests.fuzz --cases 5000 [--seed N] [--first N] [--out DIR]`: each case that fails is left in DIR."""

from __future__ import annotations

import argparse
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.fuzz.cases import run_case

MOST_KILOBYTES = 2_000_000


def main() -> int:
    """Runs the cases that are asked for; 1 where one failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("fuzz-failures"))
    asked = parser.parse_args()
    began, failed, kinds = time.monotonic(), 0, Counter[str]()
    for number in range(asked.first, asked.first + asked.cases):
        with tempfile.TemporaryDirectory() as folder:
            case = run_case(number, Path(folder), asked.seed)
            kinds["a report" if not case.message else "a message"] += 1
            if case.wrong:
                failed += 1
                kept = asked.out / f"case_{asked.seed}_{number}"
                shutil.copytree(folder, kept, dirs_exist_ok=True)
                said = f"{case.fixture}: {'; '.join(case.done)}\n{case.wrong}\n"
                (kept / "what.txt").write_text(said)
                print(f"{number} {said}", flush=True)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{asked.cases} cases in {time.monotonic() - began:.0f} s, {failed} failed, {dict(kinds)}, {memory / 1e6:.2f} GB at most")
    return 1 if failed or memory > MOST_KILOBYTES else 0


if __name__ == "__main__":
    sys.exit(main())
