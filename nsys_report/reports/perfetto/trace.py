"""Slices as a Perfetto trace, which ui.perfetto.dev opens: tracks, slices with their figures, arrows from calls to what they launched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from nsys_report.reports.arrays import NONE
from nsys_report.reports.perfetto.encoding import FIXED, Ints, merged, shape
from nsys_report.reports.perfetto.slices import Picture, Slices, Track, picture

if TYPE_CHECKING:
    from nsys_report.analysis.results import AnalysisResults
    from nsys_report.joined import Joined

_WIDTHS = {"ts": 9, "track": 4, "name": 4, "kernel": 4, "bytes": 9, "stream": 9, "execution": 9, "flow": FIXED}
_NOTES = {"kernel": 1, "bytes": 2, "stream": 3, "execution": 4}
"""Numbers of the names of a slice's figures."""
_ROOM = 1_000_000
"""Numbers that each capture has for its tracks; the first thousand are their groups'."""


def trace(captures: Mapping[str, tuple[Joined, AnalysisResults]]) -> tuple[list[bytes], tuple[str, ...]]:
    """The trace of analyzed captures by name, in pieces that follow one another, and what was left out of it.

    Of several captures, the tracks' groups are named by them.
    """
    found: list[bytes] = []
    notes: list[str] = []
    for number, (name, (joined, results)) in enumerate(captures.items()):
        shown = picture(joined, results, title=name if len(captures) > 1 else "")
        found += pieces(shown, number)
        notes += shown.notes
    return found, tuple(notes)


def pieces(shown: Picture, number: int = 0) -> list[bytes]:
    """A trace of slices; the same slices give the same bytes. `number` tells traces in one file apart."""
    return [_header(shown, number).SerializeToString(deterministic=True), *merged(*_events(shown.slices, number))]


def _first_track(number: int) -> int:
    return number * _ROOM + 1000


def _events(slices: Slices, number: int) -> tuple[list[tuple[Ints, Any]], int]:
    """The packets of all beginnings and ends with their places in the order of time.

    Where slices meet, ends stand first, and a slice of no length ends before the next begins.
    """
    count = len(slices)
    empty = slices.end == slices.start
    time = np.concatenate([slices.start, slices.end])
    rank = np.concatenate([np.where(empty, 1, 2), np.where(empty, 1, 0)])
    pair = np.where(rank == 1, np.tile(np.arange(count), 2), 0)
    place = np.empty(2 * count, np.int64)
    place[np.lexsort((pair, rank, time))] = np.arange(2 * count)
    parts = []
    for has, rows in _shapes(slices):
        parts.append((place[rows], _beginnings(slices, rows, has, number)))
    ends = shape(lambda v: _end(v, number), {"ts": 9, "track": 4})
    parts.append((place[count:], ends.packets({"ts": slices.end, "track": slices.track + _first_track(number)})))
    return parts, 2 * count


def _shapes(slices: Slices) -> Iterator[tuple[tuple[str, ...], Ints]]:
    """The slices by which figures they have."""
    optional = ("kernel", "bytes", "stream", "execution", "flow")
    mask = np.zeros(len(slices), np.int64)
    for bit, name in enumerate(optional):
        mask |= (getattr(slices, name) != NONE).astype(np.int64) << bit
    mask |= slices.is_source.astype(np.int64) << len(optional)
    for value in np.unique(mask).tolist():
        has = tuple(name for bit, name in enumerate((*optional, "is_source")) if value >> bit & 1)
        yield has, np.flatnonzero(mask == value)


def _beginnings(slices: Slices, rows: Ints, has: tuple[str, ...], number: int) -> Any:
    names = ("ts", "track", "name", *(n for n in has if n != "is_source"))
    values = {"ts": slices.start, "track": slices.track + _first_track(number), "name": slices.name + 1}
    values |= {n: getattr(slices, n) + (n == "kernel") for n in names[3:]}
    made = shape(lambda v: _begin(v, "is_source" in has, number), {n: _WIDTHS[n] for n in names})
    return made.packets({n: v[rows] for n, v in values.items()})


def _packet(trace: Any, number: int) -> Any:
    packet = trace.packet.add()
    packet.trusted_packet_sequence_id = number + 1
    return packet


def _begin(values: Mapping[str, int], is_source: bool, number: int) -> Any:
    """A trace of one packet: the beginning of a slice."""
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto

    trace = proto.Trace()
    packet = _packet(trace, number)
    packet.timestamp = values["ts"]
    packet.sequence_flags = proto.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
    event = packet.track_event
    event.type = proto.TrackEvent.TYPE_SLICE_BEGIN
    event.track_uuid, event.name_iid = values["track"], values["name"]
    for name, iid in _NOTES.items():
        if name in values:
            note = event.debug_annotations.add(name_iid=iid)
            setattr(note, "string_value_iid" if name == "kernel" else "int_value", values[name])
    if "flow" in values:
        (event.flow_ids if is_source else event.terminating_flow_ids).append(values["flow"])
    return trace


def _end(values: Mapping[str, int], number: int) -> Any:
    """A trace of one packet: the end of a slice."""
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto

    trace = proto.Trace()
    packet = _packet(trace, number)
    packet.timestamp = values["ts"]
    packet.track_event.type = proto.TrackEvent.TYPE_SLICE_END
    packet.track_event.track_uuid = values["track"]
    return trace


def _header(shown: Picture, number: int) -> Any:
    """The packets before all events: the texts that events point at, and the tracks with their groups."""
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto

    trace = proto.Trace()
    packet = _packet(trace, number)
    packet.sequence_flags = proto.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
    packet.first_packet_on_sequence = True
    for name, iid in _NOTES.items():
        packet.interned_data.debug_annotation_names.add(iid=iid, name=name)
    for at, text in enumerate(shown.names):
        packet.interned_data.event_names.add(iid=at + 1, name=text)
        packet.interned_data.debug_annotation_string_values.add(iid=at + 1, str=text.encode("utf-8", "backslashreplace"))
    groups = {group: number * _ROOM + at + 1 for at, group in enumerate(dict.fromkeys(track.group for track in shown.tracks))}
    for group, uuid in groups.items():
        described = _packet(trace, number).track_descriptor
        described.uuid, described.name = uuid, group
        described.child_ordering = proto.TrackDescriptor.EXPLICIT
        if shown.notes:
            described.description = " ".join(shown.notes)
    for at, track in enumerate(shown.tracks):
        described = _packet(trace, number).track_descriptor
        described.uuid, described.name, described.parent_uuid = _first_track(number) + at, track.name, groups[track.group]
        described.sibling_order_rank = _rank(track)
    return trace


def _rank(track: Track) -> int:
    """Executions and their gaps first, then kernels by class, then copies."""
    order = ("Executions", "Host gaps", "Kernels: ", "Graphs", "Copies", "Memsets")
    return next((i for i, start in enumerate(order) if track.name.startswith(start)), len(order))
