"""Measuring ceilings: rates from a clock that the test holds, and an entry that the report then takes."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nsys_report.analysis.roofline.ceilings import find_ceilings, read_table
from nsys_report.cli import ceilings as ceilings_command
from nsys_report.errors import InputError
from nsys_report.measuring import measure as measuring
from nsys_report.measuring.backends import find_backend


class Clock:
    """Time that passes only when work is waited for."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Steady:
    """A GPU that reads at 200 GB/s, writes at 190, copies at 180 and multiplies at 50 TFLOPS in bf16; it cannot be held to TF32."""

    name = "Steady"

    def __init__(self, clock: Clock, gpu: str = 'GB10 "Spark"') -> None:
        self.clock, self.gpu, self.queued = clock, gpu, 0.0

    def device(self) -> str:
        return self.gpu

    def _work(self, seconds: float) -> Any:
        def run() -> None:
            self.queued += seconds

        return run

    def read(self, byte_count: int) -> Any:
        return self._work(byte_count / 200e9)

    def write(self, byte_count: int) -> Any:
        return self._work(byte_count / 190e9)

    def copy(self, byte_count: int) -> Any:
        return self._work(byte_count / 180e9)

    def product(self, size: int, kind: str) -> Any:
        return self._work(2 * size**3 / (50e12 if kind == "bf16" else 10e12)) if kind != "tf32" else None

    def wait(self, result: Any) -> None:
        self.clock.now, self.queued = self.clock.now + self.queued, 0.0


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Steady:
    clock = Clock()
    monkeypatch.setattr("time.perf_counter", clock)
    return Steady(clock)


def test_rates_are_amount_over_time(backend: Steady) -> None:
    found = measuring.measure(backend, 1 << 30, 4096, today=date(2026, 11, 30))
    assert found.read.median == pytest.approx(200e9)
    assert found.copy.median == pytest.approx(180e9)
    assert found.write.median == pytest.approx(190e9)
    assert {k: round(r.median / 1e12, 3) for k, r in found.products.items()} == {"bf16": 50.0, "f32": 10.0}


def test_the_entry_is_taken_by_the_report(backend: Steady, tmp_path: Path) -> None:
    found = measuring.measure(backend, 1 << 30, 4096, today=date(2026, 11, 30))
    path = tmp_path / "ceilings.toml"
    path.write_text(measuring.entry_text(found))
    ceilings = find_ceilings('GB10 "Spark"', table=read_table(path))
    assert ceilings.measured is not None
    assert (ceilings.measured.value, ceilings.measured.date) == (180e9, "2026-11-30")
    assert "a streaming copy, reads plus writes, of 1 GiB with Steady" in ceilings.measured.origin
    assert ceilings.read is not None and ceilings.write is not None
    assert (ceilings.read.value, ceilings.write.value, ceilings.fastest_bytes_per_s) == (200e9, 190e9, 200e9)
    assert dict(ceilings.compute)["bf16"].value == 50e12
    assert "tf32" not in dict(ceilings.compute)


def test_measuring_again_replaces_the_entry_and_keeps_others(backend: Steady) -> None:
    entry = measuring.entry_text(measuring.measure(backend, 1 << 30, 4096))
    other = '[[gpu]]\nname = "Other"\nmatch = ["Other"]\n'
    once = measuring.with_entry(other, backend.gpu, entry)
    assert measuring.with_entry(once, backend.gpu, entry).count("[[gpu]]") == 2
    assert other in once


def test_the_command_prints_and_writes(backend: Steady, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nsys_report.measuring.backends.find_backend", lambda wanted: backend)
    target = tmp_path / "mine.toml"
    result = CliRunner().invoke(ceilings_command.command, ["measure", "--write", str(target), "--size", "4096"])
    assert result.exit_code == 0
    assert target.read_text() in result.output
    assert read_table(target)[0].fits('GB10 "Spark"')


def test_without_a_gpu_each_framework_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Any:
        raise RuntimeError("no CUDA device")

    monkeypatch.setattr("nsys_report.measuring.backends.BACKENDS", {"jax": fail, "torch": fail})
    with pytest.raises(InputError, match=r"jax: no CUDA device; torch: no CUDA device") as raised:
        find_backend()
    assert raised.value.exit_code == 1
