"""What remedies say where it depends on the program: what is done already, or cannot be done to it, is not advised."""

from __future__ import annotations

from hlo_mapping import Instruction
from nsys_report.findings.step import Step

COMMAND_BUFFERS = "xla_gpu_enable_command_buffer"
FUSED_TYPES = ("bf16", "f16", "f8")
"""Operands that cuDNN's attention takes (xla/service/gpu/transforms/cudnn_fused_mha_rewriter.cc): half precision and narrower."""


def loops_of(step: Step) -> list[Instruction]:
    """The program's while loops."""
    return [i for c in step.module.computations for i in c.instructions if i.opcode == "while"] if step.module is not None else []


def longer_bodies(step: Step) -> str:
    """How one launch comes to hold more of a loop: unrolling needs a known trip count, a graph of the whole loop the flag."""
    known = [loop.trip_count is not None for loop in loops_of(step)]
    unrolled = "unroll the loop (scan and fori_loop take unroll=8 or so), so that a graph holds several iterations"
    more = "do more in each iteration (several steps of its work between two tests of its condition)"
    whole = f"let one graph hold the whole loop (command buffers of type WHILE: --{COMMAND_BUFFERS}=+WHILE)"
    ways = [unrolled if all(known) else more]
    if "WHILE" not in step.flag_values(COMMAND_BUFFERS):
        ways.append(whole)
    text = "; or ".join(ways)
    return f"{text[:1].upper()}{text[1:]}."


def is_donated(step: Step) -> bool:
    """Whether the program's header aliases its results to its arguments (input_output_alias): they are donated already."""
    return step.module is not None and bool(step.module.aliases)


def keep_buffers(step: Step) -> str:
    """How buffers stay where they are from step to step."""
    donate = "what is updated is donated already, so hold" if is_donated(step) else "donate what is updated (donate_argnums), hold"
    return (
        f"Keep buffers where they are: {donate} no second reference to old results, and let temporaries of the same sizes be allocated in "
        f"the same order; or leave the program without graphs (--{COMMAND_BUFFERS}=) and compare."
    )


def state_on_device(step: Step) -> str:
    """How state stays on the device."""
    donate = "" if is_donated(step) else ", donate them (donate_argnums)"
    return (
        f"Keep the state on the device: pass the arrays that the last call returned straight into the next{donate}, and fetch them only "
        "for a checkpoint. Only the batch has to be copied."
    )


def fused_attention(step: Step) -> str:
    """Which fused attention takes the program's types; cuDNN's takes none of f32."""
    types = [str(r["dot_type"]) for r in step.of("attention", "product") if r["dot_type"] is not None]
    rest = "smaller chunks or a context bucket that fits shrink it meanwhile."
    if any(not t.startswith(FUSED_TYPES) for t in types):
        narrow = "or queries, keys and values in bf16 and jax.nn.dot_product_attention with implementation='cudnn', which takes no f32"
        return f"Use a fused attention: a flash attention kernel (Pallas, Triton), {narrow}; {rest}"
    return f"Use a fused attention: jax.nn.dot_product_attention with implementation='cudnn', or a flash attention kernel; {rest}"


def fewer_calls(step: Step) -> str:
    """How the host's work between two calls weighs less; a call that loops over steps already holds several."""
    several = "" if loops_of(step) else " do several steps in one call (a scan),"
    return (
        "The program's own code between two calls, and JAX's handling of the arguments, hold up the GPU: call ahead without waiting,"
        f"{several} or pass fewer arguments."
    )
