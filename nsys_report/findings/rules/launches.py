"""Getting work to the device: dispatch, graph launches and their updates, kernels launched one by one, loops run from the host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from nsys_report.analysis.idle.causes import READBACK_BYTES
from nsys_report.analysis.times.modules import intervals_to_next
from nsys_report.fact import Fact
from nsys_report.findings.ledger import all_of, claimed_ns
from nsys_report.findings.model import Finding
from nsys_report.findings.parts import by_time, places
from nsys_report.findings.rules.remedies import keep_buffers, loops_of
from nsys_report.findings.step import Context, Record, Step
from nsys_report.findings.thresholds import threshold
from nsys_report.intervals import Ints
from nsys_report.words import count, duration, things

CALLS = (("launch", "launch_call"), ("launch", "launch_latency"))
"""Parts of the budget in which the device waits for the next of many launches."""
GRAPHS = (("launch", "graph_launch"), ("launch", "launch_latency"))
"""Parts of the budget in which it waits for the next graph of an execution."""


def dispatch(context: Context, step: Step) -> Iterator[Finding]:
    """The time from XLA's taking the call to the first kernel: its own work, the graph's launch, the first kernel's latency."""
    work, launch, first = (("host", "xla_dispatch"), ("launch", "graph_launch"), ("launch", "first_kernel_latency"))
    traced = step.part(("profiler", "node_tracing"))
    claims = all_of(step, work, first) | {source: 1 - step.inside(launch).get(source, 0.0) for source in all_of(step, launch)}
    time = claimed_ns(step, claims)
    if time < threshold("launches", "least_launch_share") * step.wall_ns:
        return
    arguments = len(step.module.entry.parameters) if step.module is not None else None
    many = f" It has {count(arguments)} arguments to handle." if arguments and arguments >= threshold("launches", "many_arguments") else ""
    tracing = (
        f" A further {duration(traced)} in graph launches are put down to the tracing of single nodes and are not counted."
        if traced
        else ""
    )
    before = claimed_ns(step, {source: part for source, part in claims.items() if source == ("part", *launch)})
    yield Finding(
        slug="dispatch",
        title=f"Dispatching an execution leaves the GPU idle {duration(time)}, for {duration(step.kernel_ns or step.busy_ns)} of kernels",
        why=f"XLA's own work takes {duration(step.part(work))}"
        + (f", graph launch {duration(before)}" if before else "")
        + (f", and the first kernel starts {duration(step.part(first))} late" if step.part(first) else "")
        + f".{many}{tracing}",
        remedy="Larger executions: several steps or more rows in one call, fewer programs a step, fewer arguments (chain steps so that "
        "their arrays stay). Work that is started before the device is done hides it.",
        confidence="likely" if not traced else "possible",
        basis="Idle time while XLA dispatches and until the first kernel starts"
        + ("; what node tracing adds was measured on an H200" if traced else ""),
        claims=claims,
        gain_ns=time,
        facts=(
            Fact("time_ns", "idle while dispatching", time, "ns"),
            Fact("xla_ns", "XLA's own work", step.part(work), "ns"),
            Fact("graph_launch_ns", "graph launch", before, "ns"),
            Fact("node_tracing_ns", "tracing of nodes, not counted", traced, "ns"),
            Fact("first_kernel_ns", "first kernel's latency", step.part(first), "ns"),
            Fact("kernel_ns", "kernel time", step.kernel_ns, "ns"),
            Fact("arguments", "arguments of the program", arguments, "count"),
        ),
        to_capture="capture once more with --cuda-graph-trace=graph: graph launches without the tracing of their nodes" if traced else "",
    )


def kernel_nodes(context: Context, step: Step) -> float:
    """Kernels in an execution that a graph launched."""
    nodes = context.joined.activities["graph_node_id"].is_valid().to_numpy(zero_copy_only=False)
    kernels = context.view.column("activity").isin(frozenset({"kernel"}))
    return float((nodes & kernels & context.in_step(step)).sum() / step.executions)


def graph_updates(context: Context, step: Step) -> Iterator[Finding]:
    """Nodes of a CUDA graph that are given new addresses before it can run.

    Where most steps have them, their time is the typical step's, as in the budget; where few have them, the mean over all steps is their
    price, as the typical step shows too little of it.
    """
    part = ("launch", "graph_updates")
    updates = _updates(context, step)
    affected = int(np.count_nonzero(updates))
    usual = step.part(part) > 0 and 2 * affected > len(updates)
    time = step.part(part) if usual else step.mean.get(part, 0.0)
    if time < threshold("programs", "least_gain_share") * step.wall_ns:
        return
    each = float(updates.sum()) / affected if affected else time
    size = f"{duration(time)} in a typical step" if usual else f"{duration(each)} each"
    yield Finding(
        slug="graph-updates",
        title=f"A graph's nodes get new addresses in {count(affected)} of {things(len(updates), 'step')}, {size}",
        why="XLA records the kernels' addresses in a CUDA graph; when a buffer has moved since, it sets them anew, node by node "
        "(cuGraphExec...SetParams), while the device waits.",
        remedy=keep_buffers(step),
        confidence="sure",
        basis=f"Idle time while the calls were made; {'the typical step' if usual else 'mean over all steps'}",
        claims=all_of(step, part),
        gain_ns=time,
        facts=(
            Fact("typical_ns", "in a typical step", time, "ns") if usual else Fact("mean_ns", "a step, on average", time, "ns"),
            Fact("executions", "steps with updates", affected, "count"),
            Fact("each_ns", "in one of those, on average", each, "ns"),
        ),
    )


def _updates(context: Context, step: Step) -> Ints:
    """Idle time while a graph's nodes were updated before the next execution, ns, for each step: from an execution to the next one."""
    budgets = context.results.budgets
    columns = [i for i, part in enumerate(budgets.parts) if (part.category, part.part) == ("launch", "graph_updates")]
    mine = (context.view.executions.module == step.number) & context.view.executions.complete
    followed = mine & intervals_to_next(context.view)[1]
    return np.asarray(budgets.ns[followed if followed.any() else mine][:, columns].sum(axis=1), np.int64)


def launches(context: Context, step: Step) -> Iterator[Finding]:
    """Kernels launched one by one, slower than the device runs them; within a loop that the host runs, with its read-backs."""
    readbacks, waiting = _readbacks(context, step), ("idle", "loop_readback")
    time = step.part(*CALLS)
    single = max(step.kernels - kernel_nodes(context, step), 0.0)
    slow = single >= threshold("launches", "least_kernels") and time >= threshold("launches", "least_launch_share") * step.wall_ns
    if slow and (calls := _driving_calls(step)):
        yield _library(step, calls, readbacks)
        return
    looped = _may_loop(step) and readbacks >= threshold("loops", "least_readbacks") and step.part(waiting) > 0
    if slow and looped:
        yield _loop(step, readbacks, single)
    elif looped and step.part(waiting) >= threshold("programs", "least_gain_share") * step.wall_ns:
        yield _loop(step, readbacks, 0.0)
    elif slow:
        yield _one_by_one(step, time, single)


def _driving_calls(step: Step) -> list[Record]:
    """Calls of a library that launch most of a program's kernels, each of them many: an algorithm that the host runs."""
    calls = step.where(lambda r: r["opcode"] == "custom-call" and r["launches_per_execution"] > threshold("launches", "driven"))
    return list(by_time(step, calls)) if 2 * sum(r["launches_per_execution"] for r in calls) > step.kernels else []


def _may_loop(step: Step) -> bool:
    """Whether the module holds a loop or branch that the host decides; True where there is no module to ask."""
    if step.module is None:
        return True
    branches = any(i.opcode == "conditional" for c in step.module.computations for i in c.instructions)
    return branches or any(i.trip_count is None for i in loops_of(step))


SOLVERS = ("cusolver", "svd", "eigh", "syev", "potrf", "getrf", "geqrf", "lu_pivots")
"""What the call targets of factorizations and eigenvalues hold (jaxlib/gpu/solver_kernels_ffi.cc, jaxlib/gpu/solver.cc)."""


def library_remedy(targets: Sequence[str]) -> str:
    """What helps against a library that runs an algorithm from the host, by what its calls do."""
    names = [target.lower() for target in targets]
    if names and all("rnn" in name for name in names):
        return (
            "A recurrent layer goes step after step, and its library launches each from the host: give it more sequences at a time, or "
            "shorter ones; or write it as a scan (keras: use_cudnn=False), whose steps XLA launches as graphs, and compare."
        )
    if any(word in name for name in names for word in SOLVERS):
        return (
            "Solve several problems in one batched call, choose another algorithm where there is one (svd by QR or polar, eigh by Jacobi "
            "for small matrices), or solve small ones on the host; what does not need the result can be dispatched first."
        )
    return "Give one call more to do (a batch of several), or call it less often; what does not need the result can be dispatched first."


def _library(step: Step, calls: Sequence[Record], readbacks: float) -> Finding:
    waiting = ("idle", "loop_readback")
    claims = all_of(step, *CALLS, waiting)
    idle, number = claimed_ns(step, claims), sum(r["launches_per_execution"] for r in calls)
    named = [step.module.instruction(r["hlo_instruction"]) for r in calls] if step.module is not None else []
    targets = tuple(dict.fromkeys(i.custom_call_target for i in named if i is not None and i.custom_call_target))
    back = f" and reads {count(round(readbacks))} small results back in between" if round(readbacks) else ""
    runs = "run their algorithms" if len(targets) > 1 else "runs its algorithm"
    each = sum(step.spent(r) for r in calls) / number
    return Finding(
        slug="library-launches",
        title=f"A library launches {count(round(number))} kernels one after the other, and the GPU waits {duration(idle)} of each step "
        "for them",
        why=f"{' and '.join(targets) or 'The call'} {runs} from the host: that launches kernels of {duration(each)} on average{back}, and "
        "neither XLA nor a CUDA graph can do that for it.",
        remedy=library_remedy(targets),
        confidence="likely",
        basis="Idle time within and after launch calls, and around copies of a few bytes to the host; tracing makes launches slower too",
        claims=claims,
        gain_ns=idle,
        facts=(
            Fact("idle_ns", "idle for launches and read-backs", idle, "ns"),
            Fact("kernels", "kernels that the library launches", number, "count"),
            Fact("readbacks", "read-backs", readbacks, "count"),
            Fact("calls", "calls", ", ".join(targets) or None),
        ),
        places=places(step, calls),
    )


def _one_by_one(step: Step, time: float, single: float) -> Finding:
    kept = min(single * threshold("launches", "graph_node_ns"), time)
    return Finding(
        slug="launch-bound",
        title=f"{count(round(single))} kernels are launched one by one, and the GPU waits {duration(time)} of each step for the next",
        why=f"A kernel takes {duration(step.kernel_ns / step.kernels)} on average; launching and starting it takes longer, so the queue is "
        f"empty most of the time.",
        remedy="Let XLA put the kernels into CUDA graphs (command buffers, on by default: --xla_gpu_enable_command_buffer= turns them "
        "off), and make fewer, larger kernels."
        if single >= step.kernels
        else f"{count(round(step.kernels - single))} more run in CUDA graphs already. Let the graphs take in what is left out between them "
        "(library calls, convolutions, collectives: --xla_gpu_enable_command_buffer names the kinds), or make fewer, larger kernels.",
        confidence="likely",
        basis=f"Idle time within and after launch calls, less {duration(kept)} that a graph's launch of as many nodes takes; tracing makes "
        f"launches slower as well",
        claims=all_of(step, *CALLS),
        gain_ns=time - kept,
        facts=(
            Fact("idle_ns", "idle for launches", time, "ns"),
            Fact("call_ns", "within launch calls", step.part(CALLS[0]), "ns"),
            Fact("latency_ns", "between call and start", step.part(CALLS[1]), "ns"),
            Fact("kernels", "kernels launched one by one", single, "count"),
            Fact("mean_kernel_ns", "a kernel", step.kernel_ns / step.kernels, "ns"),
        ),
    )


def _loop(step: Step, readbacks: float, single: float) -> Finding:
    """`single` kernels are launched one by one beside the read-backs; graphs that are launched within an execution are the loop's too."""
    waiting = ("idle", "loop_readback")
    copies = ("copies", "to_host")
    claims = step.inside(*GRAPHS, copies) | all_of(step, waiting, *(CALLS if single else ()))
    idle = claimed_ns(step, claims)
    launching = idle - step.part(waiting) - claimed_ns(step, step.inside(copies))
    kept = min(single * threshold("launches", "graph_node_ns"), launching)
    more = f", and {count(round(single))} kernels are launched one by one" if single else ""
    loops = [i for i in loops_of(step) if i.trip_count is None]
    return Finding(
        slug="loop-readback",
        title=f"A loop's condition is read back {count(round(readbacks))} times{more}: the GPU waits {duration(idle)} of each "
        f"{duration(step.wall_ns)} step",
        why=f"XLA does not know how often the loop runs, so the host runs it: it waits for each iteration's condition "
        f"({duration(step.part(waiting))} idle in all, and the copies themselves), and only then can it launch the next"
        + (f" ({duration(launching)} waiting for launches)." if launching else "."),
        remedy="Give the loop a trip count that is known when compiling (fori_loop with constant bounds, scan) and mask what is too much, "
        "or do more in each iteration; a loop inside a CUDA graph (command buffers of type WHILE) needs neither read-back nor single "
        "launches.",
        confidence="likely",
        basis="Idle time around the read-backs"
        + (" and within executions while launching" if launching else "")
        + (f", less {duration(kept)} for a graph of as many nodes" if kept else ""),
        claims=claims,
        gain_ns=idle - kept,
        facts=(
            Fact("readbacks", "read-backs", readbacks, "count"),
            Fact("readback_ns", "idle around them", step.part(waiting), "ns"),
            Fact("launch_ns", "idle for launches", launching, "ns"),
            Fact("idle_share", "share of the execution", idle / step.wall_ns, "ratio"),
            Fact("kernels", "kernels", step.kernels, "count"),
            Fact("loop", "loop without a known trip count", ", ".join(i.name for i in loops) or None),
        ),
    )


def _readbacks(context: Context, step: Step) -> float:
    """Copies to the host of a few bytes within an execution, on average."""
    view = context.view
    small = view.column("copy_kind").isin(frozenset({"DtoH"})) & (view.cost("bytes")[0] <= READBACK_BYTES)
    return float(np.count_nonzero(small & context.in_step(step)) / step.executions)
