"""A capture as a Perfetto trace, which ui.perfetto.dev opens: tracks, slices with their figures, counters, arrows from calls to what they
launched. Slices of one class or cause share a color by their correlation id (perfetto/protos/perfetto/trace/track_event/track_event.proto).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nsys_report.reports.arrays import NONE
from nsys_report.reports.perfetto.counters import Counter
from nsys_report.reports.perfetto.encoding import FIXED, Ints, Packets, merged, shape
from nsys_report.reports.perfetto.slices import PROGRAMS, Slices, TraceContent, picture
from nsys_report.reports.timeline.model import Look
from nsys_report.units import duration, visible

if TYPE_CHECKING:
    from nsys_report.session import Session

_ROOM = 1_000_000
"""Numbers that each capture has for its tracks; the first thousand are their groups', the last thousand its counters'."""
_COLORED = ("c-", "b-", "p-")
"""Beginnings of the colors of looks that mean something: classes, parts of the budget, programs."""
_CATEGORIES = {"h-xla": "xla", "h-thunk": "xla", "h-own": "nvtx", "h-call": "cuda", "h-wait": "wait", "h-block": "block"}
_NUMBER, _TEXT = 9, 4
"""Bytes of the varints of a raw figure, and of the number of a text."""


def trace(captures: Mapping[str, Session]) -> tuple[Iterator[bytes], tuple[str, ...]]:
    """The trace of analyzed captures by name, in pieces that follow one another and are made one at a time, and what was left out of it.

    Of several captures, the tracks' groups are named by them.
    """
    shown = [from_zero(picture(session, title=name if len(captures) > 1 else "")) for name, session in captures.items()]
    notes = tuple(note for one in shown for note in one.notes)
    return (piece for number, one in enumerate(shown) for piece in pieces(one, number)), notes


def from_zero(shown: TraceContent) -> TraceContent:
    """The same where no time lies below zero, which a trace has no numbers for: warm-up before the capture's start, or a shifted export."""
    times = [shown.slices.start, *(counter.times for counter in shown.counters)]
    earliest = min((int(each.min()) for each in times if len(each)), default=0)
    if earliest >= 0:
        return shown
    slices = replace(shown.slices, start=shown.slices.start - earliest, end=shown.slices.end - earliest)
    counters = tuple(replace(counter, times=counter.times - earliest) for counter in shown.counters)
    note = f"The capture has times below zero: all stand {duration(-earliest)} later in the trace."
    return replace(shown, slices=slices, counters=counters, notes=(*shown.notes, note))


def pieces(shown: TraceContent, number: int = 0) -> Iterator[bytes]:
    """A trace of slices; the same slices give the same bytes. `number` tells traces in one file apart."""
    texts = _Texts(shown.looks)
    yield _header(shown, texts, number).SerializeToString(deterministic=True)
    yield from merged(*_events(shown, texts, number))


class _Texts:
    """The texts and the figures of looks: names, categories and values by number, from 1 in order of first use."""

    def __init__(self, looks: tuple[Look, ...]) -> None:
        self.names: dict[str, int] = {}
        self.values: dict[str, int] = {}
        self.categories: dict[str, int] = {}
        self.figures: dict[str, int] = {"execution": 1}
        self.raw: set[str] = {"execution"}
        self.name = np.array([_number(self.names, visible(look.name)) for look in looks], np.int64)
        self.category = np.array([_number(self.categories, _category(look)) for look in looks], np.int64)
        self.color = np.array([_number(self.values, look.color) if look.color.startswith(_COLORED) else NONE for look in looks], np.int64)
        self.of: dict[str, Ints] = {}
        for number, look in enumerate(looks):
            self._add(number, look, len(looks))

    def _add(self, number: int, look: Look, count: int) -> None:
        raw = dict(look.figures)
        told = {_key(label): _number(self.values, visible(text)) for label, text in look.facts if _key(label) not in raw}
        self.raw |= raw.keys()
        for key, value in (told | raw).items():
            _number(self.figures, key)
            self.of.setdefault(key, np.full(count, NONE, np.int64))[number] = value


def _number(numbers: dict[str, int], text: str) -> int:
    return numbers.setdefault(text, len(numbers) + 1)


def _key(label: str) -> str:
    """A label as the name of a figure, as queries ask for it: args.op_name, args.percent_of_roof."""
    if label.startswith("of its ") and label.endswith(" roof"):
        return "percent_of_roof"
    return {"operation": "op_name"}.get(label, label.replace(" ", "_"))


def _category(look: Look) -> str:
    return _CATEGORIES.get(look.color) or look.color[2:] or "other"


def _first_track(number: int) -> int:
    return number * _ROOM + 1000


def _counter_track(number: int) -> int:
    return (number + 1) * _ROOM - 1000


def _events(shown: TraceContent, texts: _Texts, number: int) -> tuple[list[tuple[Ints, Packets]], int]:
    """The packets of all beginnings, ends and values with their places in the order of time.

    Where slices meet, ends stand first, and a slice of no length ends before the next begins.
    """
    slices = shown.slices
    count = len(slices)
    values = [counter.times for counter in shown.counters]
    total = 2 * count + sum(map(len, values))
    empty = slices.end == slices.start
    time = np.concatenate([slices.start, slices.end, *values])
    rank = np.concatenate([np.where(empty, 1, 2), np.where(empty, 1, 0), np.full(total - 2 * count, 3)])
    pair = np.where(rank == 1, np.arange(total) % max(count, 1), 0)
    place = np.empty(total, np.int64)
    place[np.lexsort((pair, rank, time))] = np.arange(total)
    parts = []
    for has, rows in _shapes(slices, texts):
        parts.append((place[rows], _beginnings(slices, texts, rows, has, number)))
    if count:
        ends = shape(lambda v: _end(v, number), {"ts": 9, "track": 4})
        parts.append((place[count : 2 * count], Packets(ends, {"ts": slices.end, "track": slices.track + _first_track(number)})))
    at = 2 * count
    for own, counter in enumerate(shown.counters):
        parts.append((place[at : at + len(counter.times)], _values(counter, _counter_track(number) + own, number)))
        at += len(counter.times)
    return parts, total


def _of_looks(texts: _Texts) -> dict[str, Ints]:
    """What a look says beside its name, by what that is called; NONE where it says nothing of it."""
    return {**texts.of, "color": texts.color}


def _shapes(slices: Slices, texts: _Texts) -> Iterator[tuple[tuple[str, ...], Ints]]:
    """The slices by which figures they have."""
    by_look, own = _of_looks(texts), {"execution": slices.execution, "flow": slices.flow}
    said = np.zeros(len(texts.name), np.int64)
    for bit, values in enumerate(by_look.values()):
        said |= (values != NONE).astype(np.int64) << bit
    mask = said[slices.look]
    for bit, values in enumerate(own.values(), len(by_look)):
        mask |= (values != NONE).astype(np.int64) << bit
    mask |= slices.is_source.astype(np.int64) << (len(by_look) + len(own))
    for value in np.unique(mask).tolist():
        has = tuple(name for bit, name in enumerate((*by_look, *own, "is_source")) if value >> bit & 1)
        yield has, np.flatnonzero(mask == value)


def _beginnings(slices: Slices, texts: _Texts, rows: Ints, has: tuple[str, ...], number: int) -> Packets:
    look = slices.look[rows]
    values = {"ts": slices.start[rows], "track": slices.track[rows] + _first_track(number)}
    values |= {"name": texts.name[look], "category": texts.category[look]}
    values |= {key: found[look] for key, found in _of_looks(texts).items() if key in has}
    values |= {key: found[rows] for key, found in (("execution", slices.execution), ("flow", slices.flow)) if key in has}
    widths = {"ts": _NUMBER, "track": _TEXT, "name": _TEXT, "category": _TEXT, "color": _TEXT, "flow": FIXED}
    widths |= {key: _NUMBER if key in texts.raw else _TEXT for key in values if key not in widths}
    made = shape(lambda v: _begin(v, texts, "is_source" in has, number), {key: widths[key] for key in values})
    return Packets(made, values)


def _values(counter: Counter, track: int, number: int) -> Packets:
    """The packets of a counter; a value stands as the bits of its double."""
    made = shape(lambda v: _value(v, track, number), {"ts": _NUMBER, "value": FIXED})
    return Packets(made, {"ts": counter.times, "value": counter.values.astype(np.float64).view(np.int64)})


def _packet(trace: Any, number: int) -> Any:
    packet = trace.packet.add()
    packet.trusted_packet_sequence_id = number + 1
    return packet


def _begin(values: Mapping[str, int], texts: _Texts, is_source: bool, number: int) -> Any:
    """A trace of one packet: the beginning of a slice."""
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto

    trace = proto.Trace()
    packet = _packet(trace, number)
    packet.timestamp = values["ts"]
    packet.sequence_flags = proto.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
    event = packet.track_event
    event.type = proto.TrackEvent.TYPE_SLICE_BEGIN
    event.track_uuid, event.name_iid = values["track"], values["name"]
    event.category_iids.append(values["category"])
    if "color" in values:
        event.correlation_id_str_iid = values["color"]
    for key, iid in texts.figures.items():
        if key in values:
            note = event.debug_annotations.add(name_iid=iid)
            setattr(note, "int_value" if key in texts.raw else "string_value_iid", values[key])
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


def _value(values: Mapping[str, int], track: int, number: int) -> Any:
    """A trace of one packet: a value of a counter."""
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto

    trace = proto.Trace()
    packet = _packet(trace, number)
    packet.timestamp = values["ts"]
    packet.track_event.type = proto.TrackEvent.TYPE_COUNTER
    packet.track_event.track_uuid = track
    packet.track_event.double_counter_value = float(np.array([values["value"]], np.int64).view(np.float64)[0])
    return trace


def _header(shown: TraceContent, texts: _Texts, number: int) -> Any:
    """The packets before all events: the texts that events point at, and the tracks with their groups."""
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto

    trace = proto.Trace()
    packet = _packet(trace, number)
    packet.sequence_flags = proto.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
    packet.first_packet_on_sequence = True
    interned = packet.interned_data
    for field, numbers in (
        (interned.debug_annotation_names, texts.figures),
        (interned.event_names, texts.names),
        (interned.event_categories, texts.categories),
    ):
        for text, iid in numbers.items():
            field.add(iid=iid, name=text)
    for text, iid in texts.values.items():
        interned.debug_annotation_string_values.add(iid=iid, str=text.encode("utf-8", "backslashreplace"))
        interned.correlation_id_str.add(iid=iid, str=text.encode("utf-8", "backslashreplace"))
    _describe(trace, shown, number)
    return trace


def _rank(group: str) -> int:
    """Programs first, then devices, then the host."""
    name = group.rpartition(": ")[2] if group.endswith(PROGRAMS) else group
    return 0 if name == PROGRAMS else 1 if "GPU " in name else 2


def _describe(trace: Any, shown: TraceContent, number: int) -> None:
    """The tracks and counters, each under its group."""
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto

    names = dict.fromkeys([*(track.group for track in shown.tracks), *(counter.group for counter in shown.counters)])
    groups = {group: number * _ROOM + at + 1 for at, group in enumerate(sorted(names, key=_rank))}
    for rank, (group, uuid) in enumerate(groups.items()):
        described = _packet(trace, number).track_descriptor
        described.uuid, described.name, described.sibling_order_rank = uuid, visible(group), rank
        described.child_ordering = proto.TrackDescriptor.EXPLICIT
        if shown.notes:
            described.description = " ".join(shown.notes)
    for at, track in enumerate(shown.tracks):
        described = _packet(trace, number).track_descriptor
        described.uuid, described.name, described.parent_uuid = _first_track(number) + at, visible(track.name), groups[track.group]
        described.sibling_order_rank = len(shown.counters) + track.rank
    for at, counter in enumerate(shown.counters):
        described = _packet(trace, number).track_descriptor
        described.uuid, described.name, described.parent_uuid = _counter_track(number) + at, counter.name, groups[counter.group]
        described.counter.unit_name, described.sibling_order_rank = counter.unit, at
