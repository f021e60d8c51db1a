"""Faults in the texts of a dump: lines, tokens, numbers, nesting, ends."""

from __future__ import annotations

import random
import re
from pathlib import Path

TOKENS = (
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ",",
    "%",
    "=",
    '"',
    "->",
    "?",
    "#",
    "/*",
    "\x00",
    "é",
    "ROOT",
    "f32[",
    "tuple",
    "while",
    "fusion(",
    "999999999999999999999",
)
_NUMBER = re.compile(r"\d+")
_WORD = re.compile(r"[\w.\-]+")


def cut(text: str, rng: random.Random) -> tuple[str, str]:
    at = rng.randrange(len(text) + 1)
    return text[:at], f"cut at {at} of {len(text)}"


def lost_line(text: str, rng: random.Random) -> tuple[str, str]:
    lines = text.split("\n")
    at = rng.randrange(len(lines))
    return "\n".join(lines[:at] + lines[at + 1 :]), f"line {at + 1} lost"


def doubled_line(text: str, rng: random.Random) -> tuple[str, str]:
    lines = text.split("\n")
    at = rng.randrange(len(lines))
    return "\n".join([*lines[:at], lines[at], *lines[at:]]), f"line {at + 1} twice"


def swapped_lines(text: str, rng: random.Random) -> tuple[str, str]:
    lines = text.split("\n")
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return "\n".join(lines), f"lines {one + 1} and {other + 1} swapped"


def inserted(text: str, rng: random.Random) -> tuple[str, str]:
    at, token = rng.randrange(len(text) + 1), rng.choice(TOKENS)
    return text[:at] + token + text[at:], f"{token!r} at {at}"


def other_number(text: str, rng: random.Random) -> tuple[str, str]:
    found = list(_NUMBER.finditer(text))
    if not found:
        return text, "no number"
    match, number = rng.choice(found), rng.choice((0, 1, 7, 2**31, 2**63, 10**20, 10**400))
    return text[: match.start()] + str(number) + text[match.end() :], f"{match[0]} becomes {str(number)[:24]}"


def other_word(text: str, rng: random.Random) -> tuple[str, str]:
    found = list(_WORD.finditer(text))
    if len(found) < 2:
        return text, "no word"
    one, other = rng.choice(found), rng.choice(found)
    return text[: one.start()] + other[0] + text[one.end() :], f"{one[0][:40]} becomes {other[0][:40]}"


def deep(text: str, rng: random.Random) -> tuple[str, str]:
    at, depth = rng.randrange(len(text) + 1), rng.choice((50, 5_000))
    opening = rng.choice(("(", "{", "[", "((", "{{"))
    return text[:at] + opening * depth + text[at:], f"{depth} times {opening!r} at {at}"


FAULTS = (cut, lost_line, doubled_line, swapped_lines, inserted, inserted, other_number, other_number, other_word, other_word, deep)


def damage(folder: Path, rng: random.Random) -> str:
    """A fault in a file of a dump; what it was. The file of most text is hit as often as all others together."""
    files = sorted(path for path in folder.iterdir() if path.suffix == ".txt" and path.stat().st_size)
    path = max(files, key=lambda p: p.stat().st_size) if rng.random() < 0.5 else rng.choice(files)
    kind = rng.random()
    if kind < 0.05:
        path.unlink()
        return f"{path.name} gone"
    if kind < 0.1:
        path.write_bytes(path.read_bytes()[: rng.randrange(path.stat().st_size)] + b"\xff\xfe\x00")
        return f"{path.name} ends in other bytes"
    text, what = rng.choice(FAULTS)(path.read_text(errors="replace"), rng)
    path.write_text(text, errors="replace")
    return f"{path.name}: {what}"


def add_stranger(folder: Path) -> str:
    """A module that nothing ran, and a file of nobody: no figure changes."""
    (folder / "module_987654.jit_never.sm_9.0_gpu_after_optimizations.txt").write_text(
        "HloModule jit_never, is_scheduled=true\n\nENTRY %main (x: f32[3]) -> f32[3] {\n  %x = f32[3]{0} parameter(0)\n"
        "  ROOT %never_seen = f32[3]{0} negate(%x)\n}\n"
    )
    (folder / "notes.md").write_text("nobody's")
    return "a module that never ran"
