"""What a server is asked: text of so many tokens, and tensors as a model's metadata describes them."""

from __future__ import annotations

import math
import random
import zlib
from collections.abc import Mapping
from typing import Any

WORD = "the "
"""A prompt of n tokens is this word n times over, after a word of its own: about a token each, and no two prompts alike."""
MOST_VALUES = 2**24
"""Of one tensor: as JSON it takes some ten bytes each."""
WHOLE = ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64")
REAL = ("FP32", "FP64")


def prompt(stream: int, number: int, tokens: int) -> str:
    """The text of the request number of a stream."""
    return f"{stream}.{number} " + WORD * (tokens - 1)


def tensor(entry: Mapping[str, Any], stream: int, number: int, tokens: int) -> dict[str, Any]:
    """An input as JSON, alike for the same stream and number: whole numbers of 0 and 1, reals below 1, or a prompt.

    Open sizes are 1, but for the last one, which is `tokens` unless it is the first of all: that is the batch. Raises KeyError or
    ValueError where the entry says no name, shape and type, is too large, or is of a type that JSON does not carry (the v2 protocol
    sends FP16 and BF16 as binary data alone).
    """
    sizes = [int(size) for size in entry["shape"]]
    open_sizes = [place for place, size in enumerate(sizes) if size < 0]
    for place in open_sizes:
        sizes[place] = tokens if place == open_sizes[-1] and place > 0 else 1
    count, kind = math.prod(sizes), str(entry["datatype"])
    if count > MOST_VALUES:
        raise ValueError(f"{entry['name']} has {count:,} values")
    draw = random.Random(zlib.crc32(f"{stream}.{number}".encode()))
    if kind == "BYTES":
        data: list[Any] = [prompt(stream, number, tokens)] * count
    elif kind == "BOOL":
        data = [bool(draw.getrandbits(1)) for _ in range(count)]
    elif kind in WHOLE:
        data = [draw.getrandbits(1) for _ in range(count)]
    elif kind in REAL:
        data = [draw.random() for _ in range(count)]
    else:
        raise ValueError(f"{entry['name']} is of type {kind}, which JSON does not carry")
    return {"name": entry["name"], "shape": sizes, "datatype": kind, "data": data}
