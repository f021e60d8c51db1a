"""Launches as streams of tokens, in the order in which they were launched or recorded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hlo_mapping.columns import ACTIVITIES, LAUNCHES
from hlo_mapping.matching.graph_order import recorded_order
from hlo_mapping.matching.tokens import LaunchStream, Token, launch_streams

GRAPH = 7 << 32


def table(*rows: dict[str, Any]) -> pa.Table:
    """Activities in time order: the n-th starts at 100 n and was launched by thread 1 at 10 n unless its row says otherwise."""
    full = []
    for n, row in enumerate(rows):
        base = {"activity": "kernel", "start_ns": 100 * n, "end_ns": 100 * n + 50, "device_id": 0, "process_id": 1, "correlation_id": n + 1}
        launch = {
            "launch_thread": 1,
            "launch_start_ns": 10 * n,
            "launch_end_ns": 10 * n + 4,
            "name": "k",
            "grid": "1,1,1",
            "block": "1,1,1",
        }
        full.append(base | launch | row)
    schema = pa.schema([*ACTIVITIES, *LAUNCHES])
    columns = [
        pa.array([r.get(f.name) for r in full], pa.string() if pa.types.is_dictionary(f.type) else f.type).cast(f.type) for f in schema
    ]
    return pa.table(columns, schema=schema)


def kernel(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name} | more


def memory(kind: str, size: int, copy_kind: str | None = None) -> dict[str, Any]:
    return {"activity": kind, "name": copy_kind or "memset", "grid": None, "block": None, "bytes": size, "copy_kind": copy_kind}


def read(found: tuple[tuple[Token, ...], tuple[LaunchStream, ...]], at: int = 0) -> list[str]:
    """The launches of one stream, as kernel names or kind:bytes."""
    tokens, streams = found
    return [t.name if (t := tokens[c]).kind == "kernel" else f"{t.kind}:{t.byte_count}" for c in streams[at].codes.tolist()]


def test_what_is_a_launch_and_what_is_not() -> None:
    rows = [
        kernel("a"), memory("memcpy", 64, "DtoD"), memory("memset", 8), memory("memcpy", 1, "DtoH"), memory("memcpy", 4096, "DtoH"),
        memory("memcpy", 64, "HtoD"), memory("memcpy", 32, "PtoP"),
    ]  # fmt: skip
    # large copies to the host and all copies from it are no thunk's: the host moves arguments and results
    assert read(launch_streams(table(*rows))) == ["a", "copy:64", "memset:8", "readback:1", "copy:32"]


def test_equal_launches_are_one_token() -> None:
    tokens, (stream,) = launch_streams(table(kernel("a"), kernel("a", grid="2,1,1"), kernel("a"), kernel("b")))
    assert len(tokens) == 3
    assert stream.codes[0] == stream.codes[2] != stream.codes[1]


def test_streams_are_by_process_device_and_thread_in_launch_order() -> None:
    rows = [
        kernel("later", launch_start_ns=50), kernel("first", launch_start_ns=5), kernel("other", launch_thread=2),
        kernel("far", device_id=1), kernel("alien", process_id=9),
    ]  # fmt: skip
    found = launch_streams(table(*rows))
    assert sorted(tuple(read(found, n)) for n in range(4)) == [("alien",), ("far",), ("first", "later"), ("other",)]
    assert {(s.process_id, s.device_id, s.thread) for s in found[1]} == {(1, 0, 1), (1, 0, 2), (1, 1, 1), (9, 0, 1)}


def test_without_recorded_calls_correlation_ids_give_the_order() -> None:
    unknown = {"launch_thread": None, "launch_start_ns": None, "launch_end_ns": None}
    rows = [kernel("c", correlation_id=30, **unknown), kernel("a", correlation_id=10, **unknown), kernel("b", correlation_id=20, **unknown)]
    found = launch_streams(table(*rows))
    assert read(found) == ["a", "b", "c"]
    assert found[1][0].thread is None
    # where there are none either, the order on the GPU is all there is
    assert read(launch_streams(table(*(row | {"correlation_id": None} for row in rows)))) == ["c", "a", "b"]


def test_signals_and_pauses_of_the_host() -> None:
    rows = table(kernel("a"), kernel("b"), kernel("c"), kernel("d", launch_start_ns=500, launch_end_ns=510))
    _, (stream,) = launch_streams(rows, np.array([3, 3, 4, 4]))
    assert stream.fresh is not None
    assert stream.fresh.tolist() == [False, False, True, False]
    assert stream.pauses is not None
    assert stream.pauses.tolist() == [-1, 6, 6, 476]
    # a thread that never puts a host function on a stream says nothing
    assert launch_streams(rows, np.zeros(4, np.int64))[1][0].fresh is None


def node(name: str, number: int, graph: int = GRAPH, launch: int = 0) -> dict[str, Any]:
    return kernel(name, graph_node_id=graph + number, launch_start_ns=launch, launch_end_ns=launch + 1)


def test_nodes_of_a_graph_launch_stand_in_the_order_of_their_ids() -> None:
    rows = [kernel("before", launch_start_ns=0), node("b", 1, launch=9), node("a", 0, launch=9), node("c", 2, launch=9)]
    found = launch_streams(table(*rows))
    assert read(found) == ["before", "a", "b", "c"]
    assert found[1][0].inside.tolist() == [False, False, True, True]


def test_each_launch_of_a_graph_is_a_launch_of_its_own() -> None:
    rows = [node(name, n, launch=launch) for launch in (5, 6) for n, name in enumerate("ab")]
    found = launch_streams(table(*rows))
    assert read(found) == ["a", "b", "a", "b"]
    assert found[1][0].inside.tolist() == [False, True, False, True]


def test_a_node_that_runs_again_within_a_launch_repeats_its_first_run() -> None:
    rows = [node("a", 0), node("loop", 1), node("loop", 1), node("loop", 1), node("z", 2)]
    found = launch_streams(table(*rows))
    assert read(found) == ["a", "loop", "z"]
    assert found[1][0].repeats.tolist() == [[2, 1], [3, 1]]


def ordered(*ids: int) -> list[int]:
    """Node ids of one launch, given in time order, in recorded order."""
    nodes = np.array(ids) + GRAPH
    order = recorded_order(nodes, np.zeros(len(ids), np.int64), np.arange(len(ids)))
    return (nodes[order if order is not None else slice(None)] - GRAPH).tolist()


@pytest.mark.parametrize(
    ("in_time", "recorded"),
    [
        # a call recorded as node 1 holds nodes 3 and 4
        ([0, 3, 4, 2], [0, 3, 4, 2]),
        # the very first node is a call: no id before the gap
        ([8, 1, 2, 3, 4, 5, 6, 7], [8, 1, 2, 3, 4, 5, 6, 7]),
        # two calls in a row, nodes 1 and 2, and one at the end, node 4
        ([0, 5, 6, 3, 7], [0, 5, 6, 3, 7]),
        # each call's contents leave a gap of their own (a node that launches nothing)
        ([0, 6, 7, 2, 9, 10, 4], [0, 6, 7, 2, 9, 10, 4]),
        # nodes that run side by side begin in any order; no gap, so nothing stands inside another
        ([0, 2, 1, 4, 3, 5], [0, 1, 2, 3, 4, 5]),
        # side by side, with a node that launches nothing: still no contents
        ([0, 3, 1, 4, 5, 6], [0, 1, 3, 4, 5, 6]),
        # contents that begin a little early or late go to the nearest gap: node 2 is the call, 6 its kernel
        ([0, 6, 1, 3, 4, 5], [0, 1, 6, 3, 4, 5]),
    ],
)
def test_contents_of_a_node_stand_in_its_gap(in_time: list[int], recorded: list[int]) -> None:
    assert ordered(*in_time) == recorded


def test_a_body_in_a_graph_of_its_own_stands_where_it_first_began() -> None:
    inner = 9 << 32
    nodes = np.array([GRAPH, GRAPH + 1, inner, inner + 1, inner, inner + 1, GRAPH + 3])
    order = recorded_order(nodes, np.zeros(7, np.int64), np.arange(7))
    assert list(dict.fromkeys(nodes[order].tolist())) == [GRAPH, GRAPH + 1, inner, inner + 1, GRAPH + 3]


def test_an_empty_table() -> None:
    tokens, streams = launch_streams(table())
    assert (tokens, streams) == ((), ())
