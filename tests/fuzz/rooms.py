"""The commands beside the report, each given a damaged capture or dump: what they print and write is theirs, how they end is judged."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable
from pathlib import Path

from nsys_report.cli.app import run

UNFORESEEN = "failed where it should not"
"""What the command line says of an exception that nobody foresaw."""
ENDS = (0, 1, 3)
"""A report, a message about the input, and a check that failed; 2 would be about how the command was called."""

Words = Callable[[Path, Path, Path | None, Path], list[str]]
"""From the sound capture, the damaged one, its dump and a folder for outputs to a command."""


def _dumps(dump: Path | None, times: int = 1) -> list[str]:
    return [] if dump is None else ["--xla-dump", str(dump)] * times


def _diff(sound: Path, damaged: Path, dump: Path | None, out: Path) -> list[str]:
    return ["diff", str(sound), str(damaged), *_dumps(dump, 2), "--json", str(out / "d.json"), "--html", str(out / "d.html")]


def _ranks(sound: Path, damaged: Path, dump: Path | None, out: Path) -> list[str]:
    return ["report", str(sound), str(damaged), "--ranks", *_dumps(dump), "--json", str(out / "r.json"), "--markdown", str(out / "r.md")]


def _check(sound: Path, damaged: Path, dump: Path | None, out: Path) -> list[str]:
    return ["check", str(damaged), *_dumps(dump), "--assert", "programs >= 0", "--junit", str(out / "j.xml")]


def _record(sound: Path, damaged: Path, dump: Path | None, out: Path) -> list[str]:
    return ["record", str(damaged), *_dumps(dump), "--registry", str(out / "h.jsonl"), "--case", "one"]


def _anonymize(sound: Path, damaged: Path, dump: Path | None, out: Path) -> list[str]:
    return ["anonymize", str(damaged), str(out / "copy"), *_dumps(dump)]


def _page(sound: Path, damaged: Path, dump: Path | None, out: Path) -> list[str]:
    outputs = ["--html", str(out / "p.html"), "--perfetto", str(out / "p.pftrace")]
    return ["report", str(damaged), *_dumps(dump), "--top", "0", "--rollup", "layer", "--what-if", "weights=int8", *outputs]


def _files(sound: Path, damaged: Path, dump: Path | None, out: Path) -> list[str]:
    return ["report", str(damaged), *_dumps(dump), "--full", "--rollup", "source", "--csv", str(out / "c"), "--tables", str(out / "t")]


def _modules(sound: Path, damaged: Path, dump: Path | None, out: Path) -> list[str]:
    return ["modules", str(dump or out), "--instructions", "--gpu", "H200", "--json", str(out / "m.json"), "--csv", str(out / "m")]


def _summary(sound: Path, damaged: Path, dump: Path | None, out: Path) -> list[str]:
    return ["modules", str(dump or out), "--top", "0"]


ROOMS: tuple[Words, ...] = (_diff, _ranks, _check, _record, _anonymize, _page, _files, _modules, _summary)


def room_fault(room: Words, sound: Path, damaged: Path, dump: Path | None, out: Path) -> str:
    """What is wrong with how a command ended; "" for nothing."""
    out.mkdir(exist_ok=True)
    words = room(sound, damaged, dump, out)
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), warnings.catch_warnings():
        warnings.simplefilter("error")
        code = run(words)
    text = said.getvalue()
    name = " ".join(word for word in words if not word.startswith("/"))
    if UNFORESEEN in text or "Traceback" in text:
        return f"{name}: {text[text.find(UNFORESEEN) :][:400]}"
    return "" if code in ENDS else f"{name} ended with {code}: {text[-400:]}"
