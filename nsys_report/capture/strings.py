"""The capture's string table, of which only the referenced rows are read: it can hold whole log files."""

from __future__ import annotations

from collections.abc import Iterable

from nsys_report.capture.arrays import decode
from nsys_report.capture.catalogue import STRINGS, resolve
from nsys_report.capture.source import IsIn, Source, StartsWith, require

_CHUNK = 5000


class Strings:
    """Text by id, read on demand and kept."""

    def __init__(self, source: Source) -> None:
        """Opens the string table, which a filtered export may lack."""
        self._source = source
        self._table = resolve(STRINGS.name, source.columns)
        self._known: dict[int, str | None] = {}
        if self._table is not None:
            require(STRINGS, self._table, source)

    def fetch(self, ids: Iterable[int]) -> dict[int, str]:
        """The texts of these ids; ids that the capture lacks are absent."""
        wanted = list(dict.fromkeys(ids))
        missing = [i for i in wanted if i not in self._known]
        if self._table is not None:
            for at in range(0, len(missing), _CHUNK):
                chunk = tuple(missing[at : at + _CHUNK])
                rows = self._source.read(self._table, STRINGS.fields, (IsIn("id", chunk),))
                found = zip(rows["id"].to_pylist(), rows["value"].to_pylist(), strict=True)
                self._known.update((i, decode(text)) for i, text in found)
        for i in missing:
            self._known.setdefault(i, None)
        return {i: text for i in wanted if (text := self._known[i]) is not None}

    def beginning_with(self, prefixes: tuple[str, ...]) -> tuple[int, ...]:
        """The ids of all texts that begin with one of the prefixes."""
        if self._table is None:
            return ()
        rows = self._source.read(self._table, STRINGS.fields[:1], (StartsWith("value", prefixes),))
        return tuple(rows["id"].to_pylist())
