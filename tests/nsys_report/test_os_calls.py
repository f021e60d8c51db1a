"""Calls of the operating system's runtime: which are read, and what the report says of them; times worked out on paper."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from nsys_report import analyze
from nsys_report.capture import open_capture, os_calls
from nsys_report.findings.rules.os_calls import MEANING, os_call_facts, os_call_told
from nsys_report.reports.timeline.build import step_timeline
from tests.nsys_report.findings_samples import findings
from tests.nsys_report.tiny_capture import KERNEL, OTHER_THREAD, RUNTIME, STRINGS, THREAD, build, call, insert, kernel

FIXTURE = Path(__file__).parents[2] / "fixtures" / "decode"
NAMES = STRINGS | {11: "read", 12: "pthread_cond_wait"}


def os_call(start: int | None, end: int | None, name: int | None = 11, thread: int = THREAD) -> dict[str, Any]:
    """A row of OSRT_API."""
    return {"start": start, "end": end, "eventClass": 27, "globalTid": thread, "nameId": name, "returnValue": 0, "nestingLevel": None}


def capture(folder: Path, rows: list[dict[str, Any]]) -> pa.Table:
    """What is read of a capture with one kernel that THREAD launches."""
    path = build(folder / "capture.sqlite", {KERNEL: [kernel(100, 200)], RUNTIME: [call(50, 60)], "OSRT_API": rows}, NAMES)
    return open_capture(path).os_calls


def test_the_calls_of_threads_that_launch_are_read_in_order(tmp_path: Path) -> None:
    found = capture(tmp_path, [os_call(70, 90), os_call(10, 40, 12), os_call(10, 40, 12, OTHER_THREAD), os_call(70, 90)])
    assert [(r["start_ns"], r["end_ns"], r["thread"], r["name"]) for r in found.to_pylist()] == [
        (10, 40, THREAD, "pthread_cond_wait"),
        (70, 90, THREAD, "read"),
    ]


def test_calls_without_name_end_or_possible_times_are_left_out(tmp_path: Path) -> None:
    rows = [os_call(10, 40, None), os_call(10, 40, 99), os_call(10, None), os_call(None, 10), os_call(40, 10), os_call(10, 2**62)]
    assert capture(tmp_path, [*rows, os_call(20, 30)])["start_ns"].to_pylist() == [20]


def test_a_table_of_too_many_rows_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os_calls, "MOST_OS_CALLS", 1)
    assert len(capture(tmp_path, [os_call(10, 20), os_call(30, 40)])) == 0


def test_a_table_without_threads_or_times_says_nothing(tmp_path: Path) -> None:
    assert len(capture(tmp_path, [{"start": 10, "end": 20, "nameId": 11}])) == 0


def row(phase: str, length: int, *calls: tuple[str, int]) -> Any:
    return {"phase": phase, "duration_ns": length, "os_calls": list(calls) or None}


def test_the_longest_call_over_all_phases_is_named() -> None:
    """Of 1,000,000 ns 310,000 pass in a wait, in two phases; what passes in the launch is XLA's."""
    rows = [
        row("fetch", 400_000, ("read", 220_000), ("pthread_cond_wait", 110_000)),
        row("before_call", 600_000, ("pthread_cond_wait", 200_000)),
        row("launch", 900_000, ("ioctl", 900_000)),
    ]
    said = " Of the host's time in one typical step, 310 µs pass in pthread_cond_wait: the thread waits for another thread."
    assert os_call_told(rows) == said
    (fact,) = os_call_facts(rows)
    assert (fact.key, fact.value) == ("os_call_ns", 310_000)


def test_a_call_of_many_ends_is_only_named_and_a_short_one_is_not() -> None:
    assert os_call_told([row("fetch", 1000, ("poll", 900))]).endswith("900 ns pass in poll.")
    assert os_call_told([row("fetch", 1000, ("read", 99))]) == "" == os_call_told([row("fetch", 1000)])
    assert os_call_facts([row("fetch", 1000, ("read", 99))]) == ()


def test_calls_have_one_meaning() -> None:
    assert {name: MEANING.get(name, "").rpartition(" ")[2] for name in ("sem_wait", "recv", "usleep", "munmap", "ioctl", "futex")} == {
        "sem_wait": "thread",
        "recv": "input",
        "usleep": "sleeps",
        "munmap": "back",
        "ioctl": "",
        "futex": "",
    }


def test_a_report_of_a_traced_capture_names_the_call(tmp_path: Path) -> None:
    """A decode capture in which one wait fills the whole time of the launching threads: each phase passes in it from end to end."""
    path = tmp_path / "capture.sqlite"
    shutil.copy(FIXTURE / "capture.sqlite", path)
    database = sqlite3.connect(path)
    with database:
        database.execute("INSERT INTO StringIds (id, value) VALUES (987654321, 'sem_wait')")
        threads = [t for (t,) in database.execute("SELECT DISTINCT globalTid FROM CUPTI_ACTIVITY_KIND_RUNTIME")]
        first, last = database.execute("SELECT min(start), max(end) FROM CUPTI_ACTIVITY_KIND_RUNTIME").fetchone()
        insert(database, "OSRT_API", [os_call(first - 10**9, last + 10**9, 987654321, thread) for thread in threads])
    database.close()
    made = analyze(path, FIXTURE / "xla_dump")
    rows = [r for r in made.results.host_phases.to_pylist() if r["hlo_module"] == "jit_decode_step"]
    assert rows and all(r["os_calls"] == [("sem_wait", r["duration_ns"])] for r in rows if r["thread"] is not None)
    waiting = next(f for f in made.causes if f.slug == "waiting-for-host")
    assert "pass in sem_wait: the thread waits for another thread." in waiting.why
    shown = step_timeline(made, {}, [])
    assert shown is not None
    marks = [(row.group, shown.looks[look].name) for row in shown.rows if row.name == "OS calls" for look in row.look.tolist()]
    assert len(marks) == len(set(made.joined.capture.os_calls["thread"].to_pylist())), "a mark for each thread"
    assert {name for _, name in marks} == {"sem_wait"}
    untraced = findings("decode")["waiting-for-host"]
    assert waiting.why.startswith(untraced.why) and "os_call_ns" not in {fact.key for fact in untraced.facts}
