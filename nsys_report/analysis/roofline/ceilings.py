"""What the GPU can do at best: nominal and measured bandwidth, and products by type, each with its origin."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from nsys_report.errors import InputError, UsageError

COMPUTE_TYPES = ("bf16", "tf32", "f32", "fp8", "int8")
LINKS = ("nvlink", "network")
OVERRIDE_NAMES = ("measured", "nominal", *COMPUTE_TYPES, *LINKS)
IS_SLICE = re.compile(r"\bMIG\b")
"""In the name of a part of a GPU (NVIDIA's multi-instance GPU), such as "NVIDIA H100 80GB HBM3 MIG 1g.10gb"."""
LEAST, MOST = 1e-3, 1e9
"""GB/s and TFLOPS that a ceiling may have: beyond lie slips of the unit, and figures that no longer fit a number."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """One ceiling. `value`, `low`, `high` are bytes a second, or operations a second of a compute ceiling."""

    value: float
    low: float
    high: float
    kind: str
    """measured, nominal, capture or given."""
    origin: str
    """Where it comes from, in words: method, date, source."""
    date: str = ""


@dataclass(frozen=True, slots=True)
class Ceilings:
    """The ceilings a report measures against; None where nobody knows."""

    gpu: str
    nominal: Ceiling | None = None
    measured: Ceiling | None = None
    compute: tuple[tuple[str, Ceiling], ...] = ()
    entry: str | None = None
    """Name of the entry of the table of GPUs it was found in, None for a GPU without one."""
    read: Ceiling | None = None
    """Measured bandwidth of reading alone: a copy's (`measured`) is lower."""
    write: Ceiling | None = None
    links: tuple[tuple[str, Ceiling], ...] = ()
    """What a GPU can send to others, in one direction: nvlink, network."""

    def link(self, name: str) -> Ceiling | None:
        """The ceiling of nvlink or network; None where nobody says."""
        return next((c for kind, c in self.links if kind == name), None)

    @property
    def fastest_bytes_per_s(self) -> float | None:
        """What no traffic to memory can exceed: the upper end of the highest ceiling that floors are taken at, of reading or writing."""
        return max(c.high for c in (self.roof, self.read, self.write) if c is not None) if self.roof is not None else None

    @property
    def roof(self) -> Ceiling | None:
        """The bandwidth that floors are taken at: the measured one, the nominal one where none was measured."""
        return self.measured or self.nominal

    def flops_per_s(self, kind: str) -> Ceiling | None:
        """The compute ceiling of a type (bf16, tf32, f32, fp8, int8)."""
        return next((c for name, c in self.compute if name == kind), None)


@dataclass(frozen=True, slots=True)
class GpuEntry:
    """One GPU of the table, in bytes and operations a second."""

    name: str
    match: tuple[str, ...]
    nominal: Ceiling | None
    measured: Ceiling | None
    compute: tuple[tuple[str, Ceiling], ...]
    nominal_from_table: bool
    read: Ceiling | None = None
    write: Ceiling | None = None
    links: tuple[tuple[str, Ceiling], ...] = ()

    def fits(self, gpu_name: str) -> bool:
        """Whether this entry is about a GPU of that name."""
        return any(re.search(pattern, gpu_name, re.IGNORECASE) for pattern in self.match)


def find_ceilings(
    gpu_name: str,
    nominal_bytes_per_s: int | None = None,
    overrides: Mapping[str, float] | None = None,
    table: tuple[GpuEntry, ...] | None = None,
    is_part: bool = False,
) -> Ceilings:
    """The ceilings of a GPU by its name in the capture; `overrides` (see parse_overrides) come before everything.

    Of a part of a card (`is_part`, or MIG in its name) no table says anything.

    Nominal: the override, else the capture's figure, else the table's (the table's first where its entry says so).
    Measured: the override, else the table's, else None.
    """
    if is_part or IS_SLICE.search(gpu_name):  # a part of a card: neither the table's figures nor the driver's are its own
        return override(Ceilings(gpu_name), overrides or {})
    entry = next((e for e in (builtin_table() if table is None else table) if e.fits(gpu_name)), None)
    captured = _ceiling(nominal_bytes_per_s, "capture", "memory bandwidth in the capture") if nominal_bytes_per_s else None
    nominal = captured
    if entry and entry.nominal and (captured is None or entry.nominal_from_table):
        nominal = entry.nominal
    found = Ceilings(
        gpu=gpu_name,
        nominal=nominal,
        measured=entry.measured if entry else None,
        compute=entry.compute if entry else (),
        entry=entry.name if entry else None,
        read=entry.read if entry else None,
        write=entry.write if entry else None,
        links=entry.links if entry else (),
    )
    return override(found, overrides or {})


def override(ceilings: Ceilings, values: Mapping[str, float]) -> Ceilings:
    """Ceilings with the given ones (GB/s, TFLOPS) in place of those found."""
    given = {name: _ceiling(value * (1e12 if name in COMPUTE_TYPES else 1e9), "given", "given") for name, value in values.items()}
    compute = dict(ceilings.compute) | {name: c for name, c in given.items() if name in COMPUTE_TYPES}
    return replace(
        ceilings,
        nominal=given.get("nominal", ceilings.nominal),
        measured=given.get("measured", ceilings.measured),
        read=None if "measured" in given else ceilings.read,
        write=None if "measured" in given else ceilings.write,
        compute=tuple(compute.items()),
        links=tuple((dict(ceilings.links) | {name: c for name, c in given.items() if name in LINKS}).items()),
    )


def parse_overrides(texts: Iterable[str]) -> dict[str, float]:
    """`measured=233`, `nominal=273`, `nvlink=450`, `network=50` in GB/s, `bf16=70` (tf32, f32, fp8, int8) in TFLOPS; else UsageError."""
    values: dict[str, float] = {}
    for text in texts:
        name, equals, number = (part.strip() for part in text.partition("="))
        name = name.lower()
        if not equals or name not in OVERRIDE_NAMES:
            raise UsageError(f"not a ceiling: {text!r}", f"write NAME=NUMBER, NAME one of {', '.join(OVERRIDE_NAMES)}")
        try:
            value = float(number)
        except ValueError:
            value = -1.0
        if not 0 < value < float("inf"):
            raise UsageError(f"not a positive number: {text!r}", "bandwidths are in GB/s, compute ceilings in TFLOPS: measured=233")
        if not LEAST <= value <= MOST:
            raise UsageError(f"no ceiling of a GPU: {text!r}", "bandwidths are in GB/s, compute ceilings in TFLOPS: measured=233")
        if name in values:
            raise UsageError(f"two values for the ceiling {name}: {values[name]:g} and {value:g}", "give each ceiling once")
        values[name] = value
    return values


@cache
def builtin_table() -> tuple[GpuEntry, ...]:
    """The table of GPUs that comes with this package."""
    return parse_table(tomllib.loads((files(__package__) / "data" / "ceilings.toml").read_text(encoding="utf-8")))


def read_table(path: Path) -> tuple[GpuEntry, ...]:
    """A table of GPUs from a TOML file of the same form; InputError where it cannot be read or holds no GPU."""
    try:
        table = parse_table(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}", "check the path", slug="ceilings-unreadable") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not a table of ceilings but no text at all", _TABLE_HINT, slug="ceilings") from error
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError, AttributeError, re.error) as error:
        found = f"an entry lacks {error}" if isinstance(error, KeyError) else str(error)
        raise InputError(f"{path}: not a table of ceilings: {found}", _TABLE_HINT, slug="ceilings") from error
    if not table:
        raise InputError(f"{path}: a table of ceilings without a GPU: it has no [[gpu]]", _TABLE_HINT, slug="ceilings")
    return table


_TABLE_HINT = "`nsys-report ceilings measure --write FILE` writes such a table"


def parse_table(document: Mapping[str, Any]) -> tuple[GpuEntry, ...]:
    """The entries of a read TOML document."""
    return tuple(_entry(item) for item in document.get("gpu", []))


def _entry(item: Mapping[str, Any]) -> GpuEntry:
    nominal, measured = item.get("nominal"), item.get("measured")
    return GpuEntry(
        name=item["name"],
        match=tuple(re.compile(pattern).pattern for pattern in item["match"]),
        nominal=_from_table(nominal, "gb_per_s", 1e9, "nominal") if nominal else None,
        measured=_from_table(measured, "gb_per_s", 1e9, "measured") if measured else None,
        compute=tuple((kind, _from_table(c, "tflops", 1e12, c["kind"])) for kind, c in item.get("compute", {}).items()),
        nominal_from_table=item.get("nominal_from") == "table",
        read=_from_table(item["read"], "gb_per_s", 1e9, "measured") if "read" in item else None,
        write=_from_table(item["write"], "gb_per_s", 1e9, "measured") if "write" in item else None,
        links=tuple((name, _from_table(item[name], "gb_per_s", 1e9, "nominal")) for name in LINKS if name in item),
    )


def _from_table(item: Mapping[str, Any], key: str, scale: float, kind: str) -> Ceiling:
    words = [item.get("method", ""), item.get("date", ""), item.get("source", "")]
    value = item[key] * scale
    return Ceiling(
        value=value,
        low=item.get("low", item[key]) * scale,
        high=item.get("high", item[key]) * scale,
        kind=kind,
        origin=f"{kind}: " + ", ".join(w for w in words if w),
        date=item.get("date", ""),
    )


def _ceiling(value: float, kind: str, origin: str) -> Ceiling:
    return Ceiling(float(value), float(value), float(value), kind, origin)
