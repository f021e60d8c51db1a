"""The order of graph launches with conditional nodes, worked out by hand from how XLA numbers nodes."""

from __future__ import annotations

import numpy as np

from hlo_mapping.matching.nested_graphs import bodies_in_place, nested_order


def test_a_body_of_its_own_graph_stands_after_the_node_before_it() -> None:
    a, b = 1 << 32, 5 << 32
    # outer 0, condition 1, body 0 1 twice, outer 3; node 2 is the loop
    node = np.array([a, a + 1, b, b + 1, b, b + 1, a + 3])
    order = nested_order(node, lambda n: np.argsort(n, kind="stable"))
    assert list(dict.fromkeys(node[order].tolist())) == [a, a + 1, b, b + 1, a + 3]


def test_a_branch_first_taken_later_still_stands_in_its_place() -> None:
    # 0 sets the case; branches are numbered 10 and 20; 2 ends the body. First time round branch 20 runs, then 10.
    node = np.array([0, 20, 2, 0, 10, 11, 2])
    order = bodies_in_place(node, boundary=2)
    assert list(dict.fromkeys(node[order].tolist())) == [0, 10, 11, 20, 2]


def test_a_loop_in_a_branch_in_a_loop() -> None:
    # main 0 1 3 (2 is the conditional); the branch is 4 6 (5 is a loop), its body 7 8
    node = np.array([0, 1, 4, 7, 8, 7, 8, 6, 3, 0, 1, 3])
    order = bodies_in_place(node, boundary=3)
    assert list(dict.fromkeys(node[order].tolist())) == [0, 1, 4, 7, 8, 6, 3]
