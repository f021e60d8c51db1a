"""Kernels in bodies of conditional graph nodes: recorded without a launch, they take the launch of the graph around them."""

from __future__ import annotations

from nsys_report.executions.graph_bodies import adopt_graph_bodies
from tests.nsys_report.launch_samples import activities

NOBODY = {"launch_thread": None, "launch_start_ns": None, "launch_end_ns": None, "launch_api": None}


def node(graph: int, index: int) -> dict[str, int]:
    return {"graph_node_id": graph << 32 | index}


def test_a_body_takes_the_latest_launch_of_the_graph_around_it() -> None:
    launch = {"launch_start_ns": 100, "launch_api": "cuGraphLaunch"}
    again = {"launch_start_ns": 900, "launch_api": "cuGraphLaunch"}
    rows = activities(
        {"start_ns": 200, **node(1, 0), **launch},
        {"start_ns": 210, **node(5, 0), **NOBODY},
        {"start_ns": 220, **node(5, 0), **NOBODY},
        {"start_ns": 1000, **node(1, 0), **again},
        {"start_ns": 1010, **node(5, 0), **NOBODY},
    )
    adopted = adopt_graph_bodies(rows)
    assert adopted["launch_start_ns"].to_pylist() == [100, 100, 100, 900, 900]
    assert adopted["launch_api"].to_pylist() == ["cuGraphLaunch"] * 5


def test_another_graph_between_does_not_take_the_body() -> None:
    # the body ran last after graph 1 twice and after graph 2 once: it is graph 1's
    rows = activities(
        {"start_ns": 10, **node(1, 0), "launch_start_ns": 1},
        {"start_ns": 11, **node(9, 0), **NOBODY},
        {"start_ns": 20, **node(1, 0), "launch_start_ns": 2},
        {"start_ns": 21, **node(9, 0), **NOBODY},
        {"start_ns": 30, **node(1, 0), "launch_start_ns": 3},
        {"start_ns": 31, **node(2, 0), "launch_start_ns": 4, "launch_thread": 8},
        {"start_ns": 32, **node(9, 0), **NOBODY},
    )
    assert adopt_graph_bodies(rows)["launch_start_ns"].to_pylist() == [1, 1, 2, 2, 3, 4, 3]


def test_devices_do_not_adopt_each_others_and_plain_kernels_stay_as_they_are() -> None:
    rows = activities(
        {"start_ns": 10, **node(1, 0), "launch_start_ns": 1},
        {"start_ns": 11, **node(9, 0), **NOBODY, "device_id": 1},
        {"start_ns": 12, **NOBODY},
    )
    assert adopt_graph_bodies(rows)["launch_start_ns"].to_pylist() == [1, None, None]
