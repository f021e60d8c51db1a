"""Counters beside implied bytes: what an H200 counted of a training step, samples worked out by hand, files that are none."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from nsys_report import analyze
from nsys_report.capture.gpu_metrics import GPU_METRICS, read_gpu_metrics
from nsys_report.cli.app import run
from nsys_report.counters.instructions import Measured, lay_over
from nsys_report.counters.ncu import Profiled, plain_name, read_ncu
from nsys_report.counters.sampled import sampled_programs
from nsys_report.errors import InputError
from nsys_report.notebook import Analysis

TRAIN = Path(__file__).parents[2] / "fixtures/train"
NCU = TRAIN / "ncu.csv"


@pytest.fixture(scope="module")
def train() -> Analysis:
    return analyze(TRAIN / "capture.sqlite", TRAIN / "xla_dump")


def by_name(joined: Analysis, profiled: tuple[Profiled, ...]) -> Mapping[str, Measured]:
    return {one.hlo_instruction: one for one in lay_over(joined.joined, profiled).instructions}


def test_what_an_h200_read_is_what_the_shapes_say(train: Analysis) -> None:
    overlay = lay_over(train.joined, read_ncu(NCU))
    assert (overlay.launches, overlay.placed, len(overlay.instructions)) == (32, 32, 32)
    found = by_name(train, read_ncu(NCU))
    # the optimizer reads four arrays of 2048 x 2048 f32 and writes three, of which a part still lies in L2
    update = found["loop_add_subtract_fusion.2"]
    assert update.implied_bytes == 7 * 2048 * 2048 * 4
    assert update.read_bytes == pytest.approx(4 * 2048 * 2048 * 4, rel=0.001)
    # a product of 512 x 2048 by 2048 x 2048 reads both and writes 512 x 2048 twice (with its bias)
    assert found["custom-call.1"].read_bytes == pytest.approx((512 * 2048 + 2048 * 2048) * 4, rel=0.005)
    # a reduction of one array of 512 x 2048
    assert found["input_reduce_fusion.4"].of_implied == pytest.approx(1.0, abs=0.005)
    assert all(one.difference == "" for one in found.values())


def test_more_and_less_than_implied_are_told(train: Analysis) -> None:
    def scaled(read: float) -> tuple[Profiled, ...]:
        return tuple(replace(one, read_bytes=one.read_bytes * read if one.read_bytes is not None else None) for one in read_ncu(NCU))

    more = by_name(train, scaled(2.0))
    # 2 x 67.1 + 22.4 MB of 117.4; 2 x 8.46 MB of 25.2; 7.9 kB twice are too few to judge
    assert [more[name].difference for name in ("loop_add_subtract_fusion.2", "custom-call.4", "input_reduce_fusion")] == ["more", "", ""]
    less = by_name(train, scaled(0.3))
    # 20.1 + 22.4 MB of 117.4, of which 50 MB of L2 explain less than 63; 14.7 of 29.4 MB may lie there
    assert less["loop_add_subtract_fusion.2"].difference == "less" and less["custom-call.1"].difference == ""


def test_a_sequence_that_does_not_occur_is_not_placed(train: Analysis) -> None:
    profiled = read_ncu(NCU)
    assert lay_over(train.joined, profiled[1:]).placed == 0
    twice = lay_over(train.joined, (*profiled, *profiled[:5], *profiled))
    assert (twice.launches, twice.placed) == (69, 64) and {one.launches for one in twice.instructions} == {2}


def test_both_forms_of_the_csv(tmp_path: Path) -> None:
    lines = ['"ID","Process ID","Kernel Name","Block Size","Grid Size","Metric Name","Metric Unit","Metric Value"']
    name = "void ns::kernel<int, 2>(float *, int)"
    for metric, unit, value in (
        ("dram__bytes_read.sum", "Mbyte", "1,024.5"),
        ("dram__bytes_write.sum", "Kbyte", "2"),
        ("gpu__time_duration.sum", "usecond", "3.5"),
    ):
        lines.append(f'"0","7","{name}","(128, 1, 1)","(64, 2, 1)","{metric}","{unit}","{value}"')
    lines.append(f'"1","7","{name}","(128, 1, 1)","(64, 2, 1)","dram__bytes_read.sum","furlong","5"')
    (tmp_path / "long.csv").write_text("==PROF== Connected\n" + "\n".join(lines))
    first, second = read_ncu(tmp_path / "long.csv")
    assert first == Profiled(0, 7, "kernel", "64,2,1", "128,1,1", 1024.5e6, 2000.0, 3500.0)
    assert second.read_bytes is None  # a unit that nobody knows
    assert plain_name("a::b::c<d::e>(int)") == "c" and plain_name("loop_add_fusion_2") == "loop_add_fusion_2"


@pytest.mark.parametrize(
    "text", ["", "a,b\n1,2\n", "==ERROR== ERR_NVGPUCTRPERM\n", '"ID","Kernel Name"\n', '"ID","Kernel Name"\n"0","k"\n', "\0\0"]
)
def test_files_that_are_no_profile_are_errors(text: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(InputError):
        read_ncu(tmp_path / "x.csv")
    assert run(["report", str(TRAIN / "capture.sqlite"), "--ncu", str(tmp_path / "x.csv")]) == 1
    assert "ncu --csv" in capfd.readouterr().err


def samples(session: Analysis, step_ns: int, **percents: int) -> pa.Table:
    """Constant percents over all of a capture."""
    start, end = session.joined.executions["start_ns"].to_numpy().min(), session.joined.executions["end_ns"].to_numpy().max()
    times = list(range(int(start) - 2 * step_ns, int(end) + 2 * step_ns, step_ns))
    tables = [
        pa.table({"timestamp_ns": times, "gpu_id": [0] * len(times), "metric": [metric] * len(times), "percent": [percent] * len(times)})
        for metric, percent in percents.items()
    ]
    return pa.concat_tables(tables).cast(GPU_METRICS).unify_dictionaries()


def test_sampled_bytes_are_percents_of_the_peak_over_the_spans(train: Analysis) -> None:
    (one,) = sampled_programs(train.joined, train.results, samples(train, 1000, dram_read=50, dram_write=25, sms_active=80))
    whole = train.joined.executions.filter(train.joined.executions["is_complete"])
    spans = whole["end_ns"].to_numpy() - whole["start_ns"].to_numpy()
    peak = train.joined.capture.info.gpus[0].nominal_bytes_per_s
    assert peak == 4_814_304_000_000
    assert one.read_bytes == pytest.approx(0.5 * peak * spans.mean() / 1e9) and one.written_bytes == pytest.approx(one.read_bytes / 2)
    assert one.of_implied == pytest.approx(0.75 * peak * spans.mean() / 1e9 / (one.implied_bytes or 1))
    assert (one.sms_active, one.tensor_active, one.interval_ns) == (pytest.approx(0.8), None, 1000)


def test_few_samples_and_holes_say_nothing(train: Analysis) -> None:
    assert sampled_programs(train.joined, train.results, samples(train, 10_000_000, dram_read=50)) == ()
    holed = samples(train, 1000, dram_read=50, sms_active=10)
    middle = holed["timestamp_ns"].to_numpy().mean()
    far = (holed["timestamp_ns"].to_numpy() < middle) | (holed["timestamp_ns"].to_numpy() > middle + 50_000)
    (one,) = sampled_programs(train.joined, train.results, holed.filter(pa.array(far)))
    assert one.read_bytes is None and one.sms_active is None


def test_samples_of_a_capture_are_read_and_shown(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "capture.sqlite"
    path.write_bytes((TRAIN / "capture.sqlite").read_bytes())
    with sqlite3.connect(path) as database:
        start, end = database.execute("SELECT MIN(start), MAX(end) FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchone()
        database.execute("CREATE TABLE TARGET_INFO_GPU_METRICS (typeId INT, sourceId INT, typeName TEXT, metricId INT, metricName TEXT)")
        database.execute("CREATE TABLE GPU_METRICS (rawTimestamp INT, timestamp INT, typeId INT, metricId INT, value INT)")
        names = ["GPC Clock Frequency [MHz]", "DRAM Read Bandwidth [Throughput %]", "DRAM Write Bandwidth [Throughput %]"]
        database.executemany("INSERT INTO TARGET_INFO_GPU_METRICS VALUES (281479271677952, 0, '', ?, ?)", enumerate(names))
        rows = [(t, t, number, (999, 40, 20)[number]) for t in range(start - 20_000, end + 20_000, 10_000) for number in range(3)]
        database.executemany("INSERT INTO GPU_METRICS VALUES (?, ?, 281479271677952, ?, ?)", rows)
    table = read_gpu_metrics(path)
    assert set(table["metric"].to_pylist()) == {"dram_read", "dram_write"} and len(table) * 3 == len(rows) * 2
    assert run(["report", str(path), "--xla-dump", str(TRAIN / "xla_dump"), "--ncu", str(NCU)]) == 0
    out = capfd.readouterr().out
    assert "SAMPLED TRAFFIC" in out and "every 10.0 µs" in out and "32 of 32 launches that ncu profiled" in out
    assert run(["report", str(path), str(TRAIN / "capture.sqlite"), "--ncu", str(NCU)]) == 2


def test_nothing_is_said_where_nothing_was_counted(train: Analysis) -> None:
    assert train.counters is None and not read_gpu_metrics(TRAIN / "capture.sqlite").num_rows
