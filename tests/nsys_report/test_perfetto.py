"""The trace for Perfetto, read back: tracks, slices in order of time, figures, arrows, hostile names."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nsys_report.analysis.idle.causes import CAUSES
from nsys_report.capture.gpu_metrics import GPU_METRICS
from nsys_report.cli import app
from nsys_report.notebook import Analysis, analyze
from nsys_report.reports.budget_page import PARTS_IN_WORDS
from nsys_report.reports.lanes import lanes
from nsys_report.reports.perfetto import counters
from nsys_report.reports.perfetto.counters import moved_before
from nsys_report.reports.perfetto.encoding import FIXED, Packets, merged, shape, varints
from nsys_report.reports.perfetto.slices import Slices, TraceContent, Track, picture
from nsys_report.reports.perfetto.trace import from_zero, pieces, trace
from nsys_report.reports.timeline.model import Look

proto = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")


@pytest.fixture(scope="module")
def decode(fixture_path: Callable[..., Path]) -> Analysis:
    return analyze(fixture_path("decode", "capture.sqlite"), fixture_path("decode", "xla_dump"))


class Read:
    """A trace read back by Perfetto's own schema: slices by track, counters by name."""

    def __init__(self, data: bytes) -> None:
        self.packets = proto.Trace.FromString(data).packet
        self.tracks = {p.track_descriptor.uuid: p.track_descriptor for p in self.packets if p.HasField("track_descriptor")}
        interned = [p.interned_data for p in self.packets if p.HasField("interned_data")]
        self.names = {entry.iid: entry.name for entry in interned[0].event_names}
        self.categories = {entry.iid: entry.name for entry in interned[0].event_categories}
        self.texts = {entry.iid: entry.str.decode() for entry in interned[0].debug_annotation_string_values}
        self.colors = {entry.iid: entry.str.decode() for entry in interned[0].correlation_id_str}
        self.figures = {entry.iid: entry.name for entry in interned[0].debug_annotation_names}
        self.slices: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.counters: dict[str, list[tuple[int, float]]] = defaultdict(list)
        self._read()

    def _read(self) -> None:
        opened: dict[int, list[dict[str, Any]]] = defaultdict(list)
        self.times = [p.timestamp for p in self.packets if p.HasField("track_event")]
        for packet in self.packets:
            event = packet.track_event
            if not packet.HasField("track_event"):
                continue
            track = self.tracks[event.track_uuid]
            if event.type == proto.TrackEvent.TYPE_COUNTER:
                self.counters[f"{track.name}, {track.counter.unit_name}"].append((packet.timestamp, event.double_counter_value))
            elif event.type == proto.TrackEvent.TYPE_SLICE_BEGIN:
                assert not opened[event.track_uuid], "a slice within a slice"
                opened[event.track_uuid].append(self._slice(packet, event))
                self.slices[track.name].append(opened[event.track_uuid][0])
            else:
                opened[event.track_uuid].pop()["end"] = packet.timestamp
        assert not any(opened.values())

    def _slice(self, packet: Any, event: Any) -> dict[str, Any]:
        found = {"start": packet.timestamp, "name": self.names[event.name_iid], "from": list(event.flow_ids)}
        found |= {"to": list(event.terminating_flow_ids), "category": self.categories[event.category_iids[0]]}
        found["color"] = self.colors[event.correlation_id_str_iid] if event.correlation_id_str_iid else None
        for note in event.debug_annotations:
            text = note.WhichOneof("value") == "string_value_iid"
            found[self.figures[note.name_iid]] = self.texts[note.string_value_iid] if text else note.int_value
        return found

    def named(self, start: str) -> list[dict[str, Any]]:
        """The slices of all tracks whose name begins so."""
        return [s for name, found in self.slices.items() if name.startswith(start) for s in found]


@pytest.fixture(scope="module")
def read(decode: Analysis) -> Read:
    return Read(b"".join(trace({"decode": decode})[0]))


def test_a_trace_holds_every_activity_by_stream_and_every_execution(decode: Analysis, read: Read) -> None:
    assert read.times == sorted(read.times)
    activities, executions = decode.activities, decode.executions
    kernels = activities[activities.activity == "kernel"]
    shown = Counter(s["category"] for s in read.named("stream") if "kernel" in s)
    assert shown == kernels.kernel_class.value_counts().to_dict()
    on = {f"stream {number}": count for number, count in kernels.stream_id.value_counts().items()}
    assert {name: sum("kernel" in s for s in found) for name, found in read.slices.items() if name.startswith("stream ")} == on
    assert len(read.named("stream")) + len(read.named("copies")) == len(activities)
    ran = list(zip(executions.hlo_module, executions.execution_id, strict=True))
    assert [(s["name"], s["execution"]) for s in read.slices["GPU 0"]] == ran


def test_idle_time_stands_by_cause_and_adds_up(decode: Analysis, read: Read) -> None:
    idle = read.slices["idle, by cause"]
    found: Counter[str] = Counter()
    for s in idle:
        found[s["name"]] += s["end"] - s["start"]
    causes = dict(zip((c.key for c in CAUSES), decode.results.idle[0].by_cause, strict=True))
    called = {key: PARTS_IN_WORDS.get(key, key.replace("_", " ")) for key in causes}
    assert found == {called[key]: int((r.ends - r.starts).sum()) for key, r in causes.items() if len(r.starts)}
    assert all(s["idle_because"] for s in idle)


def test_host_threads_show_ranges_calls_and_waits(decode: Analysis, read: Read) -> None:
    capture = decode.joined.capture
    assert len(read.named("CUDA calls")) == len(capture.runtime)
    assert Counter(s["category"] for s in read.named("NVTX"))["xla"] == len(capture.nvtx)
    groups = {track.name for track in read.tracks.values() if not track.parent_uuid}
    assert {"GPU 0", "Programs"} < groups
    assert any(group.startswith("thread ") and group.endswith("launches") for group in groups)
    waits = Counter(kind.replace("_", " ") for kind in capture.synchronizations["kind"].to_pylist() if kind != "event_query")
    assert waits == {name: len(read.slices[name]) for name in waits}


def test_a_kernel_says_where_it_comes_from_and_how_well_it_runs(decode: Analysis, read: Read) -> None:
    row = decode.activities[decode.activities.hlo_instruction == "gemm_fusion_dot.103"].iloc[0]
    found = next(s for s in read.named("stream") if s["start"] == row.start_ns)
    assert (found["name"], found["end"], found["kernel"]) == (row.hlo_instruction, row.end_ns, row["name"])
    assert (found["bytes"], found["flops"], found["execution"]) == (row.bytes_accessed, row.flops, row.execution_id)
    assert (found["op_name"], found["source"]) == ("jit(decode_step)/convert_element_type", "workloads.py:128")
    roof = decode.results.roofline.to_pylist()
    share = next(r["share_of_roof"] for r in roof if r["hlo_instruction"] == "gemm_fusion_dot.103")
    assert found["percent_of_roof"] == f"{100 * share:.1f} %"


def test_a_class_is_one_color_and_a_cause_another(read: Read) -> None:
    colors = {(s["category"], s["color"]) for s in read.named("stream") if "kernel" in s}
    assert colors == {(name, f"c-{name}") for name, _ in colors} and len(colors) == 5
    assert {s["color"][:2] for s in read.slices["idle, by cause"]} == {"b-"}


def test_counters_give_back_busy_time_and_bytes(decode: Analysis, read: Read) -> None:
    """The area under each counter is the time that the device was busy, and the bytes that its kernels moved."""
    for name, whole in (("busy, %", decode.results.devices["busy_time_ns"][0].as_py() * 100), ("implied bandwidth, GB/s", moved(decode))):
        times, values = (np.array(column) for column in zip(*read.counters[name], strict=True))
        assert values.sum() * np.diff(times).mean() == pytest.approx(whole, rel=2e-3), name
        assert len(values) > 1000


def moved(analysis: Analysis) -> float:
    """Bytes of kernels, and of copies that instructions ask for."""
    known = analysis.joined.complete()["bytes_accessed"].fill_null(0).to_numpy()
    return float(known[analysis.results.view.work].sum())


def test_bytes_move_evenly_while_a_kernel_runs() -> None:
    """10 bytes from 0 to 10 and 40 from 5 to 15: at 5 five have moved, at 10 ten and twenty, at 15 all."""
    found = moved_before(np.array([0, 5]), np.array([10, 15]), np.array([10, 40]), np.array([-1, 0, 5, 10, 15, 99]))
    assert found.tolist() == [0, 0, 5, 30, 50, 50]


def test_what_hardware_counted_stands_beside(decode: Analysis, monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples from before the session began have no time in a trace."""
    rows = [(-5, "dram_read", 1), (10, "dram_read", 40), (20, "dram_read", 60), (20, "sms_active", 90)]
    table = pa.Table.from_pylist([dict(zip(GPU_METRICS.names, (at, 0, name, value), strict=True)) for at, name, value in rows])
    monkeypatch.setattr(counters, "read_gpu_metrics", lambda _path: table.cast(GPU_METRICS))
    capture = replace(decode.joined.capture, tables={**decode.joined.capture.tables, "GPU_METRICS": 4})
    read = Read(b"".join(pieces(picture(replace(decode, joined=replace(decode.joined, capture=capture))))))
    assert read.counters["DRAM read, of its peak, %"] == [(10, 40.0), (20, 60.0)]
    assert read.counters["multiprocessors active, %"] == [(20, 90.0)]


def test_each_launch_points_at_the_first_thing_it_launched(decode: Analysis, read: Read) -> None:
    every = [s for found in read.slices.values() for s in found]
    sources = {flow: s for s in every for flow in s["from"]}
    targets = {flow: s for s in every for flow in s["to"]}
    assert sources.keys() == targets.keys() and len(sources) > 20
    assert all(sources[flow]["start"] <= targets[flow]["start"] for flow in sources)
    assert Counter(s["name"] for s in sources.values())["cuGraphLaunch"] == decode.modules.executions[0]


def test_several_captures_keep_their_tracks_apart(decode: Analysis) -> None:
    read = Read(b"".join(trace({"a": decode, "b": decode})[0]))
    assert {t.name for t in read.tracks.values() if not t.parent_uuid} >= {"a: GPU 0", "b: GPU 0"}
    assert len({p.trusted_packet_sequence_id for p in read.packets}) == 2


def test_a_long_capture_is_shown_in_part_and_says_so(decode: Analysis) -> None:
    shown = picture(decode, most=600)
    assert any("executions" in note for note in shown.notes) and len(shown.slices) < 800
    read = Read(b"".join(pieces(shown)))
    assert any("--execution" in t.description for t in read.tracks.values())


def test_threads_have_their_names(decode: Analysis) -> None:
    thread = int(decode.joined.capture.runtime["thread"][0].as_py())
    capture = replace(decode.joined.capture, thread_names={thread: "py_xla_execute"})
    shown = picture(replace(decode, joined=replace(decode.joined, capture=capture)))
    assert any(f"thread {thread & 0xFFFFFF} py_xla_execute: " in track.group for track in shown.tracks)


def test_the_same_capture_gives_the_same_bytes(decode: Analysis) -> None:
    one, other = (b"".join(trace({"decode": decode})[0]) for _ in range(2))
    assert one == other


def test_hostile_names_are_text() -> None:
    count = np.array([0, 1])
    none = np.full(2, -1)
    slices = Slices(count * 10, count * 10 + 10, count * 0, count, none, none, count > 5)
    looks = (Look("\\x00<script>", "c-other"), Look("\u05d0", "h-own", facts=(("NVTX domain", "\x1b[31m"),)))
    read = Read(b"".join(pieces(TraceContent(slices, (Track("GPU", "a<b>"),), looks))))
    assert [s["name"] for s in read.slices["a<b>"]] == ["\\x00<script>", "\u05d0"]
    assert "\x1b" not in read.slices["a<b>"][1]["NVTX_domain"]


def test_slices_that_meet_end_before_they_begin() -> None:
    start, end = np.array([0, 10, 10, 20]), np.array([10, 10, 20, 20])
    none = np.full(4, -1)
    slices = Slices(start, end, none + 1, none + 1, none, none, none > 0)
    read = Read(b"".join(pieces(TraceContent(slices, (Track("g", "t"),), (Look("x", "c-other"),)))))
    assert [(s["start"], s["end"]) for s in read.slices["t"]] == [(0, 10), (10, 10), (10, 20), (20, 20)]


def test_lanes_hold_what_overlaps_apart() -> None:
    start, end = np.array([0, 5, 8, 20]), np.array([10, 7, 12, 30])
    assert lanes(start, end, np.zeros(4, np.int64)).tolist() == [0, 1, 1, 0]
    assert lanes(start, end, np.arange(4)).tolist() == [0, 0, 0, 0]
    assert lanes(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64)).tolist() == []


def test_varints_are_what_protobuf_reads() -> None:
    values = np.array([0, 1, 127, 128, 300, (1 << 63) - 1])
    for value, row in zip(values.tolist(), varints(values, 9), strict=True):
        assert proto.TracePacket.FromString(b"\x40" + row.tobytes()).timestamp == value
    with pytest.raises(ValueError, match="does not fit"):
        varints(np.array([128]), 1)
    with pytest.raises(ValueError, match="does not fit"):
        varints(np.array([-1]), 9)


def test_packets_of_two_shapes_come_out_in_their_places() -> None:
    def write(values: Any) -> Any:
        return proto.TracePacket(timestamp=values["ts"])

    narrow, wide = shape(write, {"ts": 2}), shape(write, {"ts": 9})
    parts = [(np.array([2, 0]), Packets(narrow, {"ts": np.array([2, 0])})), (np.array([1, 3]), Packets(wide, {"ts": np.array([1, 3])}))]
    joined = b"".join(merged(parts, 4, chunk=3))
    assert len(joined) == 2 * 3 + 2 * 10
    assert joined[:3] == b"\x40\x80\x00" and joined[3:5] == b"\x40\x81"


def test_a_stand_in_that_is_not_written_is_an_error() -> None:
    with pytest.raises(ValueError, match="does not stand once"):
        shape(lambda values: proto.TracePacket(timestamp=values["ts"]), {"ts": 9, "flow": FIXED})


def test_the_option_writes_a_file(fixture_path: Callable[..., Path], tmp_path: Path) -> None:
    for name in ("torch_mlp", "decode_graph"):
        assert app.run([str(fixture_path(name, "capture.sqlite")), "--perfetto", str(tmp_path / "t.pftrace")]) == 0
        assert Read((tmp_path / "t.pftrace").read_bytes()).slices


def test_times_below_zero_are_moved_and_said(decode: Analysis) -> None:
    """A second before the session's start, as after nsys export --ts-shift: all stand as much later, and no duration changes."""
    shown = picture(decode)
    early = replace(shown, slices=replace(shown.slices, start=shown.slices.start - 10**9, end=shown.slices.end - 10**9), counters=())
    moved = from_zero(early)
    assert int(moved.slices.start.min()) == 0
    assert ((moved.slices.end - moved.slices.start) == (shown.slices.end - shown.slices.start)).all()
    assert moved.notes[-1].startswith("The capture has times below zero")
    assert len(b"".join(pieces(moved))) > 1000
    assert from_zero(shown) is shown
