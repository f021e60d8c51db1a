"""`run.json`: how a capture was made, kept beside it; and what of that a report may show."""

from __future__ import annotations

import json
import platform
import shlex
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nsys_report.profiling import gpu
from nsys_report.profiling.gpu import Gauge, Idleness
from nsys_report.profiling.run import ProfiledRun

FILE = "run.json"
GIT_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Conditions:
    """The machine and the source before a run."""

    idleness: Idleness = field(default_factory=Idleness)
    warmed: bool = False
    gpus: Sequence[Mapping[str, Any]] = ()
    driver: str | None = None
    commit: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


def prepare(limit_s: float, wants_warmth: bool, labels: Mapping[str, str], say: Callable[[str], None]) -> Conditions:
    """Waits for an idle GPU for `limit_s` seconds at most (0: does not look), warms it, and reads clocks, driver and source."""
    gauge = gpu.find_gauge()
    idleness = gpu.Gate(gauge, say=say).wait(limit_s) if gauge is not None and limit_s else Idleness()
    return conditions(gauge, idleness, wants_warmth and gauge is not None and gpu.warm(), labels)


def conditions(gauge: Gauge | None, idleness: Idleness, warmed: bool, labels: Mapping[str, str]) -> Conditions:
    """What can be read of clocks, driver and source."""
    return Conditions(idleness, warmed, gauge.state() if gauge else (), gauge.driver() if gauge else None, _commit(), labels)


def _commit() -> str | None:
    """The commit of the repository that the run starts in, with a plus where files differ from it."""
    try:
        asked = ["git", "describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*"]
        done = subprocess.run(asked, capture_output=True, text=True, timeout=GIT_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


def document(run: ProfiledRun, found: Conditions, flags: str) -> dict[str, Any]:
    """Everything of the run, also what names the machine: the file stays with who made it."""
    return {
        **surroundings(found),
        "command": shlex.join(run.plan.profile_command()),
        "nsys": run.plan.nsys.name_and_version,
        "nsys_path": run.plan.nsys.path,
        "window": run.plan.window.description,
        "traces": run.plan.traces,
        "graph_mode": run.plan.graph_mode,
        "exit_code": run.exit_code,
        "xla_flags": flags,
        "program": dict(run.program),
        "remarks": list(run.remarks),
    }


def surroundings(found: Conditions) -> dict[str, Any]:
    """The machine and the source before a run, as the file holds them."""
    return {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": platform.node(),
        "labels": dict(found.labels),
        "contended": found.idleness.contended,
        "utilization_percent": found.idleness.utilization,
        "waited_s": round(found.idleness.waited_s, 1),
        "warmed": found.warmed,
        "gpus": [dict(gpu) for gpu in found.gpus],
        "driver": found.driver,
        "commit": found.commit,
    }


def write(document: Mapping[str, Any], folder: Path) -> None:
    (folder / FILE).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def shown(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Rows of a report: what does not name the machine, its paths or its user. Labels are the user's own words."""
    program = document["program"]
    compiled = None
    if "compiles" in program:
        compiled = f"{program['compiles']} programs in {program['compile_s']:.1f} s"
        if "compiles_in_window" in program:
            compiled += f", {program['compiles_in_window']} of them inside the window"
    rows = [
        ("recorded", f"{document['window']}, traced {document['traces']}, graphs by {document['graph_mode']}"),
        ("tool", document["nsys"]),
        ("JAX", program.get("jax") and f"{program['jax']}, jaxlib {program.get('jaxlib')}"),
        ("compiled", compiled),
        ("compilation cache", _cache_words(program)),
    ]
    return [*((name, value) for name, value in rows if value), *shown_surroundings(document)]


def shown_surroundings(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The same of the machine and the source alone."""
    rows = [
        ("driver", document["driver"]),
        ("GPU before the run", _gpu_words(document["gpus"])),
        ("other work", _idle_words(document)),
        ("commit", document["commit"]),
        *((f"label {name}", value) for name, value in document["labels"].items()),
    ]
    return [(name, value) for name, value in rows if value]


def _gpu_words(gpus: Iterable[Mapping[str, Any]]) -> str:
    units = (("sm_mhz", "MHz"), ("memory_mhz", "MHz memory"), ("temperature_c", "°C"), ("power_w", "W"))
    return "; ".join(", ".join(f"{gpu[key]} {unit}" for key, unit in units if gpu.get(key) is not None) for gpu in gpus)


def _idle_words(document: Mapping[str, Any]) -> str:
    return Idleness(document["contended"], document["utilization_percent"], document["waited_s"]).summary


def _cache_words(program: Mapping[str, Any]) -> str | None:
    if "cache_hits" not in program:
        return None
    return f"off; {program['cache_hits']} hits, {program['cache_misses']} misses"
