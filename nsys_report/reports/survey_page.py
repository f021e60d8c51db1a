"""What `check` says of a capture alone: what was recorded, and what a report could answer from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from nsys_report.reports.model import Notice, Section
from nsys_report.reports.notices import DUMP_FLAGS, health_notices
from nsys_report.units import count, duration

if TYPE_CHECKING:
    from nsys_report.capture.survey import Survey

NOT_JOINED = (
    "Nothing was joined: executions, what the host did, lost launches and the fit of a dump are known after analyzing, as a report does."
)


def survey_section(name: str, survey: Survey) -> Section:
    """One capture's check by its counts, in about ten lines."""
    notices = (
        records_notice(_recorded(survey), bool(survey.kernels or survey.graphs)),
        *(n for n in health_notices(survey.items, everything=True) if n.slug != "kernels" or n.severity != "ok"),  # the records say it
        Notice("not-joined", NOT_JOINED, f"Run with {DUMP_FLAGS}, and give the directory: --xla-dump DIR.", "info"),
    )
    return Section("check", name, (_headline(survey), *answers(_questions(survey))), notices=notices, module=name)


def _headline(survey: Survey) -> str:
    """The capture in one line: GPUs, nsys version, how long it recorded, kernels."""
    info = survey.capture.info
    gpus = ", ".join(dict.fromkeys(gpu.name or "unknown GPU" for gpu in info.gpus)) or "no GPU"
    recorded = f"{duration(info.duration_ns)} recorded" if info.duration_ns is not None else "recorded for an unknown time"
    return f"{gpus} · nsys {info.nsys_version or 'of unknown version'} · {recorded} · {count(survey.kernels)} kernels"


def _questions(survey: Survey) -> Iterable[tuple[str, bool]]:
    sound = not survey.is_damaged
    runs = bool(survey.modules) and sound
    yield "which kernels take the time", bool(survey.kernels) and sound
    yield "which programs ran, how long, and the gaps between them", runs
    yield "what the host did in the gaps", runs and bool(survey.calls)
    yield "which HLO instructions and classes take the time", False
    yield "how far from the bandwidth ceiling", False


def answers(questions: Iterable[tuple[str, bool]]) -> Iterable[str]:
    """Two sentences: the questions that people bring which are answered, and those that are not."""
    asked = dict(questions)
    for answered, words in ((True, "It answers"), (False, "It does not answer")):
        chosen = [question for question, found in asked.items() if found is answered]
        if chosen:
            yield f"{words}: {'; '.join(chosen)}."


def _recorded(survey: Survey) -> dict[str, int]:
    return {
        "kernels": survey.kernels,
        "copies and memsets": survey.copies,
        "API calls": survey.calls,
        "NVTX events": survey.ranges,
        "synchronisations": survey.synchronizations,
        "allocations": len(survey.capture.memory_usage),
    }


def records_notice(recorded: Mapping[str, int], has_work: bool) -> Notice:
    """What was recorded, and which tables are absent or empty; `has_work` where kernels or whole graphs are."""
    there = ", ".join(f"{count(number)} {name}" for name, number in recorded.items() if number) or "nothing"
    absent = ", ".join(name for name, number in recorded.items() if not number)
    text = f"Recorded: {there}." + (f" Not recorded: {absent}." if absent else "")
    return Notice("records", text, severity="ok" if has_work else "info")
