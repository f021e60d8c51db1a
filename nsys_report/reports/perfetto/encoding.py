"""Millions of trace packets of one shape at once: the perfetto package writes one, NumPy writes the values of all others into copies of it.

Protobuf lets a varint be longer than it needs to be, so every packet of a shape takes the same bytes at the same places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

FIXED = 0
"""In place of a width: eight bytes and no varint."""


@dataclass(frozen=True, slots=True)
class PacketShape:
    """The bytes of one packet, and for each value where it stands in them and how many bytes its varint takes, or FIXED."""

    template: bytes
    places: Mapping[str, tuple[int, int]]

    def packets(self, values: Mapping[str, Ints]) -> Bytes:
        """One row of bytes a packet. `values` has one array for each place, all of a length.

        Raises ValueError for a value that is negative or takes more bytes.
        """
        count = len(next(iter(values.values())))
        rows = np.tile(np.frombuffer(self.template, np.uint8), (count, 1))
        for name, (place, width) in self.places.items():
            if width == FIXED:
                rows[:, place : place + 8] = values[name].astype("<u8").view(np.uint8).reshape(count, 8)
            else:
                rows[:, place : place + width] = varints(values[name], width)
        return rows


@dataclass(frozen=True, slots=True)
class Packets:
    """Packets of one shape that are written when they are asked for: their values, one array for each place, all of a length."""

    shape: PacketShape
    values: Mapping[str, Ints]

    def __len__(self) -> int:
        return len(next(iter(self.values.values())))

    @property
    def width(self) -> int:
        """Bytes of one."""
        return len(self.shape.template)

    def __getitem__(self, rows: Ints) -> Bytes:
        return self.shape.packets({name: values[rows] for name, values in self.values.items()})


def varints(values: Ints, width: int) -> Bytes:
    """Each value in `width` bytes of 7 bits, least first, with the sign to go on in all but the last."""
    if len(values) and (int(values.min()) < 0 or int(values.max()) >> (7 * width)):
        raise ValueError(f"a value does not fit into a varint of {width} bytes")
    out = ((values[:, None] >> (np.arange(width, dtype=np.int64) * 7)) & 0x7F).astype(np.uint8)
    out[:, :-1] |= 0x80
    return out


def shape(write: Callable[[Mapping[str, int]], Any], widths: Mapping[str, int]) -> PacketShape:
    """The shape of the packet that `write` makes of values by name: a stand-in is written for each, and found again in the bytes.

    `widths` says how many bytes each value's varint takes, or FIXED.
    """
    stand_ins = {name: (1 << (7 * (width or 9))) - 1 - number for number, (name, width) in enumerate(widths.items())}
    template = write(stand_ins).SerializeToString(deterministic=True)
    places = {}
    for name, value in stand_ins.items():
        width = widths[name]
        wanted = value.to_bytes(8, "little") if width == FIXED else varints(np.array([value], np.int64), width).tobytes()
        if template.count(wanted) != 1:
            raise ValueError(f"the stand-in of {name} does not stand once in the packet")
        places[name] = (template.index(wanted), width)
    return PacketShape(template, places)


def merged(parts: list[tuple[Ints, Packets]], count: int, chunk: int = 100_000) -> Iterator[bytes]:
    """The packets of all parts in the order of their positions (0 to count - 1, each once), as pieces of one file, one at a time."""
    length, source, row = np.zeros(count, np.int16), np.zeros(count, np.int16), np.zeros(count, np.int32)
    for number, (positions, packets) in enumerate(parts):
        length[positions], source[positions], row[positions] = packets.width, number, np.arange(len(packets))
    for first in range(0, count, chunk):
        here = slice(first, first + chunk)
        starts = np.concatenate([[0], np.cumsum(length[here], dtype=np.int64)])
        out = np.empty(starts[-1], np.uint8)
        for number in np.unique(source[here]).tolist():
            mine = np.flatnonzero(source[here] == number)
            packets = parts[number][1]
            out[starts[mine][:, None] + np.arange(packets.width)] = packets[row[here][mine]]
        yield out.tobytes()
