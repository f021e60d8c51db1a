"""The stack-frame tables that stand between a module's header and its computations (2026 text)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hlo_mapping.quoting import unquote
from hlo_mapping.text.attributes import number, pairs

TITLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
_ROW = re.compile(r"(\d+) (.*)")


@dataclass(frozen=True, slots=True)
class Frame:
    """One stack frame: where it stands, and the frame that called it (0 for none)."""

    file: str
    function: str
    line: int
    parent: int


def read_frames(tables: str) -> dict[int, Frame]:
    """The frames by id. The text prints a parent's id plus one, so that 1 means none; `parent` is the real id."""
    rows = _read_rows(tables)
    files, functions, places = rows["FileNames"], rows["FunctionNames"], rows["FileLocations"]
    frames: dict[int, Frame] = {}
    for frame_id, text in rows["StackFrames"].items():
        frame = pairs(text)
        place = pairs(places.get(number(frame.get("file_location_id")), ""))
        frames[frame_id] = Frame(
            file=unquote(files.get(number(place.get("file_name_id")), "")),
            function=unquote(functions.get(number(place.get("function_name_id")), "")),
            line=number(place.get("line")),
            parent=max(0, number(frame.get("parent_frame_id")) - 1),
        )
    return frames


def _read_rows(tables: str) -> dict[str, dict[int, str]]:
    rows: dict[str, dict[int, str]] = {title: {} for title in TITLES}
    current: dict[int, str] = {}
    for line in tables.splitlines():
        if line.strip() in rows:
            current = rows[line.strip()]
        elif found := _ROW.match(line):
            current[int(found[1])] = found[2]
    return rows
