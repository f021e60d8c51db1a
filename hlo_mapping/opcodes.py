"""What each HLO opcode is: one row an opcode, which everything else that asks about opcodes reads.

Opcodes as XLA prints them (xla/hlo/ir/hlo_opcode.h). What launches work on a GPU is what ThunkEmitter does with it
(xla/service/gpu/thunk_emitter.cc, before 2025 ir_emitter_unnested.cc), after layout assignment has made reshapes of bitcasts.
"""

from __future__ import annotations

from dataclasses import dataclass

from hlo_mapping.kernel_classes import DETAILS, Detail

TRAITS = {
    "elementwise": "each element of the result needs one element of every operand, though perhaps one elsewhere",
    "arithmetic": "combines the elements of two operands",
    "computes": "makes numbers of numbers, and does not only move them",
    "function": "computes what needs more than multiplications and additions, or a sum",
    "view": "names the same bytes in another shape (a reshape is a bitcast after layout assignment)",
    "retypes": "keeps the elements, in another type or order",
    "moves": "keeps the elements of its first operand, of all or some of them",
    "takes": "takes a part at a place that may be computed",
    "slices": "reads or writes a slice of a buffer",
    "updates": "replaces a part of its first operand",
    "product": "multiplies two operands and sums over a dimension",
    "whole": "needs all of every operand, whatever part of the result is used",
    "root": "takes a square root",
    "collective": "moves data between devices",
    "start": "begins what a later -done ends, and launches it",
    "done": "ends what a -start began: it waits, and launches nothing",
    "passes": "its result is its first operand's value",
    "nothing": "launches nothing on the GPU by itself",
    "control": "runs the computations that it calls, whose instructions launch work of their own",
    "inlined": "the computations that it calls are part of its own kernel",
    "memset": "launches a memset of its four bytes (ReplicaOrPartitionIdThunk, xla/backends/gpu/runtime/replica_id_thunk.cc)",
}
"""What the words in the table mean."""

_TABLE = """
abs elementwise
acos elementwise
acosh elementwise
add elementwise arithmetic computes
add-dependency passes nothing
after-all nothing
all-gather collective moves
all-gather-done collective done
all-gather-start collective start result:1
all-reduce collective inlined
all-reduce-done collective done
all-reduce-start collective start inlined
all-to-all collective
and elementwise
asin elementwise
asinh elementwise
async-done done
async-start start control
async-update passes nothing
atan2 elementwise
atanh elementwise
batch-norm-grad
batch-norm-inference
batch-norm-training
bitcast elementwise view retypes moves nothing
bitcast-convert elementwise retypes moves
broadcast
call control
cbrt elementwise
ceil elementwise
cholesky whole thunk:kCholesky detail:solver
clamp elementwise
collective-broadcast collective
collective-permute collective moves
collective-permute-done collective done
collective-permute-start collective start result:1
compare elementwise
complex elementwise
concatenate
conditional control
constant nothing
convert elementwise retypes moves
convolution product whole computes thunk:kConvolution
copy elementwise retypes moves thunk:kCopy
copy-done done
copy-start start result:0 thunk:kCopy
cosh elementwise
cosine elementwise computes function
count-leading-zeros elementwise
custom-call whole
divide elementwise arithmetic computes function
domain passes nothing
dot product whole computes thunk:kGemm
dynamic-reshape
dynamic-slice takes slices
dynamic-update-slice slices updates
erf elementwise
exponential elementwise computes function
exponential-minus-one elementwise
fft whole thunk:kFft detail:fft
floor elementwise
fusion inlined
gather takes
get-dimension-size
get-tuple-element nothing
imag elementwise
infeed detail:transfer
iota
is-finite elementwise
log elementwise computes function
log-plus-one elementwise
logistic elementwise computes function
map elementwise inlined
maximum elementwise arithmetic
minimum elementwise arithmetic
multiply elementwise arithmetic computes
negate elementwise
not elementwise
opt-barrier passes nothing
optimization-barrier passes nothing
or elementwise
outfeed detail:transfer
pad
parameter nothing
partition-id memset
popcnt elementwise
power elementwise arithmetic computes function
ragged-all-to-all collective
ragged-dot product whole computes
real elementwise
recv collective start result:0
recv-done done
reduce computes function inlined
reduce-precision elementwise retypes moves
reduce-scatter collective inlined
reduce-window inlined
remainder elementwise
replica-id memset
reshape elementwise view retypes moves
reverse elementwise moves
rng
rng-bit-generator
rng-get-and-update-state elementwise
round-nearest-afz elementwise
round-nearest-even elementwise
rsqrt elementwise computes function root
scaled-dot product whole computes
scan inlined
scatter updates inlined
select elementwise
select-and-scatter inlined detail:pooling
send collective start result:0
send-done done
set-dimension-size
shift-left elementwise
shift-right-arithmetic elementwise
shift-right-logical elementwise
sign elementwise
sine elementwise computes function
sinh elementwise
slice moves slices
sort whole inlined thunk:kSort detail:sort
sqrt elementwise computes function root
stochastic-convert elementwise
subtract elementwise arithmetic computes
tan elementwise
tanh elementwise computes function
topk whole detail:sampling
transpose elementwise retypes moves
triangular-solve whole thunk:kTriangularSolve detail:solver
tuple nothing
while control
xor elementwise
"""


@dataclass(frozen=True, slots=True)
class Opcode:
    """One row: an opcode's traits, and what else is asked of some."""

    name: str
    traits: frozenset[str]
    result: int | None = None
    """Of a start whose shape is a tuple, the element that holds the value; None where the whole shape does."""
    thunk: str = ""
    """The kind of thunk that a library, a copy, or several kernels of their own make of it; "" for one kernel or none."""
    detail: Detail | None = None
    """The finer kind of a launch that holds it, whatever else it holds; None where that does not tell."""


_DETAILS: dict[str, Detail] = {detail: detail for detail in DETAILS}


def _row(line: str) -> Opcode:
    name, *words = line.split()
    named = dict(w.split(":") for w in words if ":" in w)
    result = int(named["result"]) if "result" in named else None
    detail = _DETAILS[named["detail"]] if "detail" in named else None
    return Opcode(name, frozenset(w for w in words if ":" not in w), result, named.get("thunk", ""), detail)


OPCODES = {row.name: row for row in map(_row, _TABLE.strip().splitlines())}


def having(trait: str) -> frozenset[str]:
    """The opcodes of one trait."""
    return frozenset(name for name, row in OPCODES.items() if trait in row.traits)


ELEMENTWISE = having("elementwise")
ARITHMETIC = having("arithmetic")
COMPUTING = having("computes")
FUNCTIONS = having("function")
VIEW_OPCODES = having("view")
RESHAPING = having("retypes")
MOVING = having("moves")
TAKING = having("takes")
SLICING = having("slices")
UPDATING = having("updates")
PRODUCTS = having("product")
WHOLE = having("whole")
ROOTS = having("root")
COLLECTIVES = frozenset(name for name in having("collective") if not name.endswith(("-start", "-done")))
STARTS = {name: OPCODES[name].result for name in having("start") - {"async-start"}}
DONES = having("done") - {"async-done"}
PASSING = having("passes")
NO_WORK = having("nothing")
INLINED = having("inlined")
ENTERED = having("control")
MEMSETS = having("memset")


def base_opcode(opcode: str) -> str:
    """The opcode of an operation that is printed in halves: all-gather of all-gather-start."""
    return opcode.removesuffix("-start").removesuffix("-done").removesuffix("-update")


def is_collective(opcode: str) -> bool:
    """Whether an opcode, or the operation that it is a half of, moves data between devices."""
    return base_opcode(opcode) in COLLECTIVES
