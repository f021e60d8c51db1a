"""The trace for Perfetto, read back: tracks, slices in order of time, figures, arrows, hostile names."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nsys_report.cli import app
from nsys_report.notebook import Analysis, analyze
from nsys_report.reports.lanes import lanes
from nsys_report.reports.perfetto.encoding import FIXED, merged, shape, varints
from nsys_report.reports.perfetto.slices import Picture, Slices, Track, picture
from nsys_report.reports.perfetto.trace import pieces, trace

proto = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")


@pytest.fixture(scope="module")
def decode(fixture_path: Callable[..., Path]) -> Analysis:
    return analyze(fixture_path("decode", "capture.sqlite"), fixture_path("decode", "xla_dump"))


class Read:
    """A trace read back as lists of slices by track name."""

    def __init__(self, data: bytes) -> None:
        self.packets = proto.Trace.FromString(data).packet
        self.tracks = {p.track_descriptor.uuid: p.track_descriptor for p in self.packets if p.HasField("track_descriptor")}
        interned = [p.interned_data for p in self.packets if p.HasField("interned_data")]
        self.names = {entry.iid: entry.name for entry in interned[0].event_names}
        self.texts = {entry.iid: entry.str.decode() for entry in interned[0].debug_annotation_string_values}
        self.figures = {entry.iid: entry.name for entry in interned[0].debug_annotation_names}
        self.slices: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self._read()

    def _read(self) -> None:
        opened: dict[int, list[dict[str, Any]]] = defaultdict(list)
        self.times = [p.timestamp for p in self.packets if p.HasField("track_event")]
        for packet in self.packets:
            event = packet.track_event
            if not packet.HasField("track_event"):
                continue
            if event.type == proto.TrackEvent.TYPE_SLICE_BEGIN:
                found = {"start": packet.timestamp, "name": self.names[event.name_iid], "from": list(event.flow_ids)}
                found["to"] = list(event.terminating_flow_ids)
                for note in event.debug_annotations:
                    text = note.WhichOneof("value") == "string_value_iid"
                    found[self.figures[note.name_iid]] = self.texts[note.string_value_iid] if text else note.int_value
                assert not opened[event.track_uuid], "a slice within a slice"
                opened[event.track_uuid].append(found)
                self.slices[self.tracks[event.track_uuid].name].append(found)
            else:
                opened[event.track_uuid].pop()["end"] = packet.timestamp
        assert not any(opened.values())


def test_a_trace_holds_every_activity_execution_and_gap(decode: Analysis) -> None:
    read = Read(b"".join(trace({"decode": (decode.joined, decode.results)})[0]))
    assert read.times == sorted(read.times)
    activities, executions = decode.activities, decode.executions
    kernels = activities[activities.activity == "kernel"]
    shown = {name.removeprefix("Kernels: "): len(found) for name, found in read.slices.items() if name.startswith("Kernels: ")}
    assert shown == kernels.kernel_class.value_counts().to_dict()
    copies = activities[activities.activity == "memcpy"]
    assert sum(len(found) for name, found in read.slices.items() if name.startswith("Copies: ")) == len(copies)
    assert len(read.slices["Executions"]) == len(executions)
    assert [s["name"] for s in read.slices["Executions"]] == list(executions.hlo_module)
    gaps = executions.host_gap_ns[executions.host_gap_ns > 0]
    assert sorted(s["end"] - s["start"] for s in read.slices["Host gaps"]) == sorted(gaps)
    groups = {track.name for track in read.tracks.values() if not track.parent_uuid}
    assert groups == {"GPU 0 (NVIDIA H200)", "Host: calls that launch"}


def test_a_kernel_is_named_by_its_instruction_and_says_its_bytes(decode: Analysis) -> None:
    read = Read(b"".join(trace({"decode": (decode.joined, decode.results)})[0]))
    first = decode.activities[decode.activities.kernel_class == "weights"].iloc[0]
    found = read.slices["Kernels: weights"][0]
    assert (found["name"], found["start"], found["end"]) == (first.hlo_instruction, first.start_ns, first.end_ns)
    assert (found["kernel"], found["bytes"], found["execution"]) == (first["name"], first.bytes_accessed, first.execution_id)


def test_each_launch_points_at_the_first_thing_it_launched(decode: Analysis) -> None:
    read = Read(b"".join(trace({"decode": (decode.joined, decode.results)})[0]))
    every = [s for found in read.slices.values() for s in found]
    sources = {flow: s for s in every for flow in s["from"]}
    targets = {flow: s for s in every for flow in s["to"]}
    assert sources.keys() == targets.keys() and len(sources) > 20
    assert all(sources[flow]["start"] <= targets[flow]["start"] for flow in sources)
    assert Counter(s["name"] for s in sources.values())["cuGraphLaunch"] == decode.modules.executions[0]


def test_several_captures_keep_their_tracks_apart(decode: Analysis) -> None:
    one = decode.joined, decode.results
    read = Read(b"".join(trace({"a": one, "b": one})[0]))
    assert {t.name for t in read.tracks.values() if not t.parent_uuid} >= {"a: GPU 0 (NVIDIA H200)", "b: GPU 0 (NVIDIA H200)"}
    assert len({p.trusted_packet_sequence_id for p in read.packets}) == 2


def test_a_long_capture_ends_after_a_whole_execution(decode: Analysis) -> None:
    shown = picture(decode.joined, decode.results, most=300)
    assert "of" in shown.notes[0] and len(shown.slices) < 700
    read = Read(b"".join(pieces(shown)))
    last = max(s["end"] for s in read.slices["Executions"])
    assert all(s["end"] <= last for name, found in read.slices.items() if name.startswith("Kernels") for s in found)
    assert any("The first" in t.description for t in read.tracks.values())


def test_the_same_capture_gives_the_same_bytes(decode: Analysis) -> None:
    one = {"decode": (decode.joined, decode.results)}
    assert trace(one) == trace(one)


def test_hostile_names_are_text() -> None:
    count = np.array([0, 1])
    none = np.full(2, -1)
    slices = Slices(count * 10, count * 10 + 10, count * 0, count, none, none, none, none, none, count > 5)
    read = Read(b"".join(pieces(Picture(slices, (Track("GPU", "a\u2028<b>"),), ("\\x00<script>", "\u05d0")))))
    assert [s["name"] for s in read.slices["a\u2028<b>"]] == ["\\x00<script>", "\u05d0"]


def test_slices_that_meet_end_before_they_begin() -> None:
    start, end = np.array([0, 10, 10, 20]), np.array([10, 10, 20, 20])
    none = np.full(4, -1)
    slices = Slices(start, end, none + 1, none + 1, none, none, none, none, none, none > 0)
    read = Read(b"".join(pieces(Picture(slices, (Track("g", "t"),), ("x",)))))
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
    parts = [(np.array([2, 0]), narrow.packets({"ts": np.array([2, 0])})), (np.array([1, 3]), wide.packets({"ts": np.array([1, 3])}))]
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
