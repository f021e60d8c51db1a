"""Workloads by their written form: what a server is asked, by how many streams at once."""

from __future__ import annotations

import re
from dataclasses import dataclass

from nsys_report.errors import UsageError

WRITTEN = "decode:PREFIX:STEPS[:STREAMS], prefill:PREFIX:CHUNKS, or prompts:TOKENS:ROUNDS:STREAMS (STREAMS also as 1,2,4)"
MOST = 10**7
ONE_TOKEN = 1
PROMPT_OUTPUT = 16
"""Tokens that a request of `prompts` asks for."""
_FORM = re.compile(r"(decode):(\d+):(\d+)(?::(\d+))?|(prefill):(\d+):(\d+)|(prompts):(\d+):(\d+):(\d+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Workload:
    """Each of `streams` clients sends `rounds` requests one after another, each with a prompt of its own.

    `decode`: a prompt of PREFIX tokens, then STEPS tokens, on each stream. `prefill`: CHUNKS prompts of PREFIX tokens one after
    another, one token each. `prompts`: each of STREAMS clients sends ROUNDS prompts of TOKENS tokens, sixteen tokens each.
    """

    written: str
    prompt_tokens: int
    output_tokens: int
    rounds: int
    streams: int


def parse_workloads(written: str) -> list[Workload]:
    """Reads the written form, in which STREAMS may be several: `decode:512:64:1,2,4` is three workloads. Raises UsageError."""
    stem, colon, streams = written.rpartition(":")
    if "," not in streams:
        return [parse_workload(written)]
    return [parse_workload(f"{stem}{colon}{number}") for number in streams.split(",")]


def parse_workload(written: str) -> Workload:
    """Reads the written form. Raises UsageError for another."""
    match = _FORM.fullmatch(written)
    if not match:
        raise UsageError(f"workload {written!r} cannot be read", f"write {WRITTEN}")
    numbers = [int(text) for text in match.groups() if text and text.isdigit()]
    if not all(0 < number <= MOST for number in numbers):
        raise UsageError(f"workload {written!r}: every number is at least 1, and at most {MOST:,}", f"write {WRITTEN}")
    if match[1]:
        return Workload(written, numbers[0], numbers[1], 1, numbers[2] if match[4] else 1)
    if match[5]:
        return Workload(written, numbers[0], ONE_TOKEN, numbers[1], 1)
    return Workload(written, numbers[0], PROMPT_OUTPUT, numbers[1], numbers[2])
