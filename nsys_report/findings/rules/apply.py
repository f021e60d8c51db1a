"""From a joined and analyzed capture to findings: every rule, no moment claimed twice, the largest gain first."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from nsys_report.analysis.results import AnalysisResults
from nsys_report.capture.health import Health
from nsys_report.capture.health import health as judge
from nsys_report.findings.helpers import with_helpers
from nsys_report.findings.ledger import OF_INSTRUCTIONS, settle
from nsys_report.findings.model import Elsewhere, Finding, Place, Source
from nsys_report.findings.rules import CAPTURE_RULES, DEVICE_RULES, EXECUTION_RULES, OTHER_STEP_RULES, REST_RULES, STEP_RULES
from nsys_report.findings.step import Context, Step, make_context
from nsys_report.findings.thresholds import threshold
from nsys_report.findings.tried import judged
from nsys_report.findings.unexplained import unexplained
from nsys_report.joined import Joined

PACED = 0.3
"""Share of a step that the device is idle from which a host that never waits for it sets the pace."""


def find(
    joined: Joined,
    results: AnalysisResults,
    health: Health | None = None,
    programs: Collection[tuple[str | None, int | None]] | None = None,
) -> tuple[Finding, ...]:
    """What costs time in a capture, by the time to be gained over the capture; ties by share.

    A damaged capture comes first and is judged no further. Findings whose gain the capture cannot decide come last. `programs` (module
    name and XLA's number) leaves out what is about others.
    """
    context = make_context(joined, results, judge(joined.capture) if health is None else health)
    found = [finding for rule in CAPTURE_RULES for finding in rule(context)]
    for step in context.steps:
        if programs is not None and (step.key.hlo_module, step.key.program_id) not in programs:
            continue
        settled, left = _settled(context, step)
        found += _weighed_findings(step, settled, context.shared)
        found += [_weighed(rest, step, context.shared) for rest in unexplained(step, left)]
        found += [_weighed(apart, step, context.shared) for rule in OTHER_STEP_RULES for apart in rule(context, step)]
    merged = _merged(found)
    return tuple(sorted(with_helpers(context, merged) if programs is None else merged, key=_rank))


def _rank(finding: Finding) -> tuple[bool, float, float]:
    """A damaged capture first, then by the time at stake over the capture: what is to be gained, and what nobody knows the gain of."""
    stake = finding.total_gain_ns or (finding.stake_ns if finding.gain_ns is None else 0.0)
    return (not finding.damage, -stake, -(finding.share or 0.0))


def _settled(context: Context, step: Step) -> tuple[list[Finding], Mapping[Source, float]]:
    """What the rules find in a step, each with its part of the ledger, and what is left; the last rules see what the others left."""
    rules = (*(STEP_RULES if step.is_steady else EXECUTION_RULES), *DEVICE_RULES)
    settled, left = settle(step.accounts, (finding for rule in rules for finding in rule(context, step)))
    for rule in REST_RULES:
        more, left = settle(step.accounts, rule(context, step, left), left)
        settled += more
    return settled, left


def _weighed_findings(step: Step, found: Iterable[Finding], shared: float) -> Iterator[Finding]:
    """Findings with what they are worth; what neither explains nor returns a fair part of the step goes.

    `shared` is what the programs' steps cover over their lengths: idle time in several programs' steps counts once over the capture.
    """
    least, rest = threshold("programs", "least_gain_share"), step.wall_ns
    for finding in sorted(found, key=lambda f: -max(f.gain_ns or 0.0, f.explained_ns)):
        stake = max(finding.gain_ns or 0.0, finding.explained_ns)
        if stake >= least * max(rest, step.kernel_ns):
            rest -= stake
            yield judged(_weighed(finding, step, shared))


def _weighed(finding: Finding, step: Step, shared: float) -> Finding:
    """A finding with what it is worth in its program's step."""
    on_device = any(source[0] in OF_INSTRUCTIONS for source in finding.claims)
    caveat, gain = _caveat(step) if on_device else "", finding.gain_ns
    return replace(
        finding,
        hlo_module=step.key.hlo_module,
        program_id=step.key.program_id,
        executions=step.executions,
        stake_ns=finding.stake_ns or (finding.explained_ns * step.executions if gain is None else 0.0),
        total_gain_ns=(gain or 0.0) * (1.0 if on_device else shared) * step.executions,
        title=_of_executions(step, finding.title),
        why=_of_executions(step, finding.why),
        share_of="step" if step.is_steady else "execution",
        share=gain / step.wall_ns if gain is not None and step.wall_ns else None,
        tokens_per_s=_tokens(step, gain),
        basis=f"{finding.basis}.{caveat}",
        confidence="possible" if caveat else finding.confidence,
        places=tuple(_with_line(step, place) for place in finding.places[: int(threshold("programs", "most_places"))]),
        place_count=len(finding.places),
    )


_A_STEP = re.compile(r"\b(?P<each>each (?:[\d.,]+ \S+ )?|[Ii]n each )step\b|\ba step\b")


def _of_executions(step: Step, text: str) -> str:
    """A sentence of a rule about what it is measured by: a program that is called at no steady pace has executions, and no steps."""
    return text if step.is_steady else _A_STEP.sub(lambda found: f"{found['each']}execution" if found["each"] else "an execution", text)


def _with_line(step: Step, place: Place) -> Place:
    """A place with its instruction's line, without metadata and backend configuration."""
    text = step.module.excerpt(place.hlo_instruction) if step.module is not None else ""
    for tail in (", metadata=", ", backend_config=", ", frontend_attributes="):
        text = text.partition(tail)[0]
    return replace(place, hlo=text)


def _tokens(step: Step, gain: float | None) -> float | None:
    """Tokens a second that a shorter step would win."""
    if gain is None or step.tokens is None or gain >= step.wall_ns:
        return None
    return step.tokens * 1e9 / (step.wall_ns - gain) - step.tokens * 1e9 / step.wall_ns


def _caveat(step: Step) -> str:
    """What keeps a shorter kernel from shortening the step: a device that waits for the host anyway."""
    idle = step.wall_ns - step.kernel_ns
    waits = step.part(("copies", "waiting_for_result"), ("copies", "to_host"), ("host", "synchronising"))
    launching = step.part(("launch", "launch_call"), ("launch", "launch_latency"))
    if launching >= step.kernel_ns:
        return " The host's launches set this program's pace: only fewer launches shorten the step."
    if idle >= PACED * step.wall_ns and waits == 0:
        return " The host sets this program's pace and never waits for the device: shorter kernels shorten no step before it does."
    return ""


def _merged(found: Iterable[Finding]) -> list[Finding]:
    """One finding for each cause: that of the program with most to gain, the others' named in it."""
    by_slug: dict[str, list[Finding]] = {}
    for finding in found:
        by_slug.setdefault(finding.slug, []).append(finding)
    merged = []
    for same in by_slug.values():
        first, *others = sorted(same, key=lambda f: (f.hlo_module is not None, -f.total_gain_ns, -f.stake_ns))
        also = tuple(
            Elsewhere(f.hlo_module, f.program_id, f.explained_ns, f.gain_ns, f.executions, f.places, f.explains)
            for f in others
            if f.hlo_module is not None
        )
        merged.append(replace(first, also=also, total_gain_ns=sum(f.total_gain_ns for f in same)))
    return merged
