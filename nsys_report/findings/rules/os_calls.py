"""Which call of the operating system's runtime held the host between two calls of a program, where the capture traced them."""

from __future__ import annotations

from collections.abc import Sequence

from nsys_report.analysis.arrays.rows import HostPhaseRow
from nsys_report.fact import Fact
from nsys_report.words import duration

LEAST_SHARE = 0.1
"""Share of the host's time between two calls that a call of the operating system must take to be named."""
XLA_PHASES = ("dispatch", "launch")
"""Phases that are XLA's and the driver's, with rules of their own."""
_MEANINGS = (
    (
        "the thread waits for another thread",
        (
            *("pthread_cond_wait", "pthread_cond_timedwait", "pthread_cond_clockwait"),
            *("pthread_mutex_lock", "pthread_mutex_timedlock", "pthread_rwlock_rdlock", "pthread_rwlock_wrlock"),
            *("pthread_join", "pthread_barrier_wait", "sem_wait", "sem_timedwait", "sem_clockwait"),
        ),
    ),
    ("the thread waits for input", ("read", "pread", "pread64", "readv", "preadv", "preadv64", "fread", "recv", "recvfrom", "recvmsg")),
    ("the thread sleeps", ("nanosleep", "clock_nanosleep", "usleep", "sleep")),
    ("the thread takes memory from the system or gives it back", ("mmap", "mmap64", "munmap", "mremap", "brk", "sbrk")),
)
"""What a call says of the thread, by POSIX and Linux (man 2, man 3); ioctl, poll, futex and the like serve too many ends to say."""
MEANING = {name: meaning for meaning, names in _MEANINGS for name in names}


def longest_os_call(rows: Sequence[HostPhaseRow]) -> tuple[str, int] | None:
    """The call that the threads spent most of one typical step in (rows of schema HOST_PHASES), before XLA took the next call, and for
    how many ns; None where none was traced or none took LEAST_SHARE of that time."""
    between = [row for row in rows if row["phase"] not in XLA_PHASES]
    found: dict[str, int] = {}
    for row in between:
        for name, ns in row["os_calls"] or ():
            found[name] = found.get(name, 0) + ns
    name, longest = max(found.items(), key=lambda item: item[1], default=("", 0))
    enough = LEAST_SHARE * sum(row["duration_ns"] for row in between)
    return (name, longest) if longest and longest >= enough else None


def os_call_told(rows: Sequence[HostPhaseRow]) -> str:
    """That call in words, and what it says of the thread; nothing where there is none."""
    longest = longest_os_call(rows)
    if longest is None:
        return ""
    name, ns = longest
    meaning = f": {MEANING[name]}" if name in MEANING else ""
    return f" Of the host's time in one typical step, {duration(ns)} pass in {name}{meaning}."


def os_call_facts(rows: Sequence[HostPhaseRow]) -> tuple[Fact, ...]:
    """That call as a figure."""
    longest = longest_os_call(rows)
    return () if longest is None else (Fact("os_call_ns", f"of one typical step in {longest[0]}", float(longest[1]), "ns"),)
