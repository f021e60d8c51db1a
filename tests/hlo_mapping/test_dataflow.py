"""The flat graph: what each use points at, whatever tuples, loops, branches and wrappers lie between."""

from __future__ import annotations

from hlo_mapping.dataflow import Graph, build_graph
from tests.hlo_mapping.hlo_samples import module


def node(graph: Graph, name: str) -> int:
    """The node that an instruction of this name made."""
    return next(n for n, i in enumerate(graph.instructions) if i.name == name)


def test_a_fusions_operations_use_the_values_outside_it() -> None:
    fused = """%f (p: f32[8], q: f32[8]) -> f32[8] {
  %p = f32[8] parameter(0)
  %q = f32[8] parameter(1)
  ROOT %mul = f32[8] multiply(%p, %q)
}"""
    graph = build_graph(
        module(
            """%x = f32[8] parameter(0)
            %b = f32[8] bitcast(%x)
            ROOT %fusion = f32[8] fusion(%b, %x), kind=kLoop, calls=%f""",
            fused,
        )
    )
    assert [k.instruction.name for k in graph.kernels] == ["fusion"]
    product = node(graph, "mul")
    assert graph.kernels[0].results == (product,)
    assert [graph.viewed(i) for i in graph.inputs[product]] == [node(graph, "x")] * 2
    assert graph.outputs == (product,)


def test_parts_of_tuples_lead_to_what_made_them() -> None:
    graph = build_graph(
        module(
            """%x = (f32[8], s32[]) parameter(0)
            %inner = (f32[8], (f32[8], s32[])) tuple(%x#0, %x)
            %g = f32[8] get-tuple-element(%inner), index=0
            %h = s32[] get-tuple-element(%inner#1), index=1
            %neg = f32[8] negate(%g)
            ROOT %out = (f32[8], s32[]) tuple(%neg, %h)"""
        )
    )
    assert graph.parameters == {0: (0, (0,)), 1: (0, (1,))}
    assert graph.inputs[node(graph, "neg")] == (0,)
    assert graph.outputs == (node(graph, "neg"), 1)


LOOP = """%cond (c: (s32[], f32[8], f32[8])) -> pred[] {
  %c = (s32[], f32[8], f32[8]) parameter(0)
  %limit = s32[] constant(4)
  ROOT %less = pred[] compare(%c#0, %limit), direction=LT
}
%body (t: (s32[], f32[8], f32[8])) -> (s32[], f32[8], f32[8]) {
  %t = (s32[], f32[8], f32[8]) parameter(0)
  %one = s32[] constant(1)
  %next = s32[] add(%t#0, %one)
  %step = f32[8] add(%t#1, %t#2)
  ROOT %r = (s32[], f32[8], f32[8]) tuple(%next, %step, %t#2)
}"""
LOOP_ENTRY = """%x = f32[8] parameter(0)
%w = f32[8] parameter(1)
%zero = s32[] constant(0)
%start = (s32[], f32[8], f32[8]) tuple(%zero, %x, %w)
%while = (s32[], f32[8], f32[8]) while(%start), condition=%cond, body=%body, backend_config={"known_trip_count":{"n":"4"}}
ROOT %y = f32[8] negate(%while#1)"""


def test_what_a_loop_only_hands_on_is_what_it_started_from() -> None:
    graph = build_graph(module(LOOP_ENTRY, LOOP))
    carried, invariant = graph.inputs[node(graph, "step")]
    assert graph.ops[carried] == "phi"
    assert graph.inputs[carried] == (node(graph, "x"), node(graph, "step"))
    assert invariant == node(graph, "w")
    assert graph.inputs[node(graph, "y")] == (carried,)
    (loop,) = graph.loops
    assert loop.trip_count == 4
    assert len(loop.phis) == 2


def test_launches_in_loops_know_their_loop_and_whether_they_are_its_condition() -> None:
    graph = build_graph(module(LOOP_ENTRY, LOOP))
    found = {k.instruction.name: (k.loop, k.in_condition) for k in graph.kernels}
    assert found == {"less": (0, True), "next": (0, False), "step": (0, False), "y": (-1, False)}


def test_a_conditional_is_any_of_its_branches() -> None:
    branches = """%yes (a: f32[8]) -> f32[8] {
  %a1 = f32[8] parameter(0)
  ROOT %double = f32[8] add(%a1, %a1)
}
%no (a: f32[8]) -> f32[8] {
  ROOT %a2 = f32[8] parameter(0)
}"""
    graph = build_graph(
        module(
            """%p = pred[] parameter(0)
            %x = f32[8] parameter(1)
            %c = f32[8] conditional(%p, %x, %x), true_computation=%yes, false_computation=%no
            ROOT %y = f32[8] negate(%c)""",
            branches,
        )
    )
    (joined,) = graph.inputs[node(graph, "y")]
    assert graph.ops[joined] == "phi"
    assert set(graph.inputs[joined]) == {node(graph, "double"), node(graph, "x")}
    assert [k.instruction.name for k in graph.kernels] == ["double", "y"]


def test_async_wrappers_calls_and_barriers_leave_no_node() -> None:
    wrapped = """%inner (a: f32[8]) -> f32[8] {
  %a3 = f32[8] parameter(0)
  ROOT %neg = f32[8] negate(%a3)
}
%called (a: f32[8]) -> f32[8] {
  %a4 = f32[8] parameter(0)
  ROOT %exp = f32[8] exponential(%a4)
}"""
    graph = build_graph(
        module(
            """%x = f32[8] parameter(0)
            %s = ((f32[8]), f32[8], u32[]) async-start(%x), calls=%inner
            %u = ((f32[8]), f32[8], u32[]) async-update(%s)
            %d = f32[8] async-done(%u)
            %bar = f32[8] opt-barrier(%d)
            ROOT %y = f32[8] call(%bar), to_apply=%called""",
            wrapped,
        )
    )
    assert [k.instruction.name for k in graph.kernels] == ["neg", "exp"]
    assert graph.inputs[node(graph, "exp")] == (node(graph, "neg"),)


def test_operations_with_starts_of_their_own_give_their_value_at_the_done() -> None:
    graph = build_graph(
        module(
            """%x = f32[8] parameter(0)
            %ar = f32[8] all-reduce-start(%x), to_apply=%add
            %done = f32[8] all-reduce-done(%ar)
            %ag = (f32[8], f32[16]) all-gather-start(%done), dimensions={0}
            %gathered = f32[16] all-gather-done(%ag)
            %cp = (f32[16], f32[16]{0:S(5)}, u32[]) copy-start(%gathered)
            %copied = f32[16] copy-done(%cp)
            ROOT %y = f32[16] negate(%copied)"""
        )
    )
    assert [graph.ops[k.first] for k in graph.kernels] == ["all-reduce", "all-gather", "copy", "negate"]
    assert graph.shapes[node(graph, "ag")].dimensions == (16,)
    assert graph.inputs[node(graph, "y")] == (node(graph, "cp"),)


def test_each_array_of_an_operation_with_several_results_is_a_node() -> None:
    graph = build_graph(
        module(
            """%k = f32[8] parameter(0)
            %v = s32[8] parameter(1)
            %sort = (f32[8], s32[8]) sort(%k, %v), dimensions={0}, to_apply=%add
            ROOT %y = s32[8] negate(%sort#1)"""
        )
    )
    (leaf,) = graph.inputs[node(graph, "y")]
    assert (graph.ops[leaf], graph.shapes[leaf].element_type) == ("leaf", "s32")
    assert graph.kernels[0].results == (leaf - 1, leaf)


def test_a_slice_of_a_concatenation_is_a_slice_of_the_part_it_lies_in() -> None:
    graph = build_graph(
        module(
            """%x = f32[8,4] parameter(0)
            %w = f32[16,4] parameter(1)
            %c = f32[24,4] concatenate(%x, %w), dimensions={0}
            %a = f32[16,4] slice(%c), slice={[8:24], [0:4]}
            %b = f32[16,4] slice(%c), slice={[4:20], [0:4:1]}
            ROOT %t = (f32[16,4], f32[16,4]) tuple(%a, %b)"""
        )
    )
    assert graph.inputs[node(graph, "a")] == (node(graph, "w"),)
    assert graph.inputs[node(graph, "b")] == (node(graph, "c"),)
