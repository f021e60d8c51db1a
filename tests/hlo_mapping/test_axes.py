"""Which dimensions of a parameter a product sums over."""

from __future__ import annotations

import pytest

from hlo_mapping.classification.axes import summed_axes
from hlo_mapping.classification.contents import trace
from hlo_mapping.classification.uses import find_uses
from hlo_mapping.dataflow import build_graph
from tests.hlo_mapping.hlo_samples import module

VIEWS = {
    "%v = f32[24,32]{1,0} copy(%w)": {0},
    "%t = f32[32,24]{1,0} transpose(%w), dimensions={1,0}\n%v = f32[24,32]{1,0} reshape(%t)": {0, 1},
    "%b = f32[32,24]{0,1} bitcast(%w)\n%v = f32[24,32]{1,0} transpose(%b), dimensions={1,0}": {0},
    "%r = f32[4,6,32]{2,1,0} bitcast(%w)\n%v = f32[24,32]{1,0} reshape(%r)": {0},
}


@pytest.mark.parametrize("views", VIEWS)
def test_axes_through_views(views: str) -> None:
    lines = f"""%x = f32[8,24]{{1,0}} parameter(0)
    %w = f32[24,32]{{1,0}} parameter(1)
    {views}
    ROOT %y = f32[8,32]{{1,0}} dot(%x, %v), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"""
    graph = build_graph(module(lines))
    (product,) = find_uses(graph, trace(graph)).products.values()
    _, w = graph.parameters
    assert summed_axes(graph, product, product.right, w) == VIEWS[views]


def test_sums_in_parts_sum_over_the_whole_dimension() -> None:
    lines = """%x = f32[8,24]{1,0} parameter(0)
    %w = f32[24,32]{1,0} parameter(1)
    %a = f32[8,4,6]{2,1,0} bitcast(%x)
    %b = f32[4,6,32]{2,1,0} bitcast(%w)
    ROOT %y = f32[4,8,32]{2,1,0} dot(%a, %b), lhs_batch_dims={1}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}"""
    graph = build_graph(module(lines))
    (product,) = find_uses(graph, trace(graph)).products.values()
    x, w = graph.parameters
    assert summed_axes(graph, product, product.left, x) == {1}
    assert summed_axes(graph, product, product.right, w) == {0}


def test_what_was_computed_has_no_axes_of_the_parameter() -> None:
    lines = """%x = f32[8,24]{1,0} parameter(0)
    %w = f32[24,32]{1,0} parameter(1)
    %s = f32[24,32]{1,0} add(%w, %w)
    ROOT %y = f32[8,32]{1,0} dot(%x, %s), lhs_contracting_dims={1}, rhs_contracting_dims={0}"""
    graph = build_graph(module(lines))
    (product,) = find_uses(graph, trace(graph)).products.values()
    _, w = graph.parameters
    assert summed_axes(graph, product, product.right, w) is None
