"""The words that XLA and JAX make names of: what an anonymous copy of a dump may keep. Any other word may be somebody's."""

from __future__ import annotations

import re

from hlo_mapping.kernel_kinds import KINDS
from hlo_mapping.opcodes import OPCODES

_WORD = re.compile(r"[^\W\d_]+")
_COMMON = """
a above accumulate acos acosh activation activations all alloc allocate allreduce alpha and any approx arg argmax argmin args array asin
asinh assign assume async atan atanh attention average backward band base batch before below beta between bf bias bits block blocked body
bool bound box bsr buffer buffers bw bwd byte c call callback called carry case cast cat cbrt ceil channel check cholesky clamp clip clone
closed coeff collective combine combiner command compare compress computation cond condition config conj const constant contract conv
conversion convert copy core correct cos cosh count counter cross cublas cublaslt cudnn cufft cumlogsumexp cummax cummin cumprod cumsum
cusolver custom cutlass data dd deallocate degenerate depth dequantize derivative device diagonal diff difference digamma dim dims
direction dispatch div donate done dot down draft dropout duplicate dus dw dynamic e earlier eig eigh element elementwise else emitted
empty end enter entry eps eq erf erfc error even exit exp expand expanded explicit exponential extend external f false ffi fft fill filter
final find finite first flash flat flip float floor fma fmha fn fnuz for force forward fp from full function fused fusion fusions fwd ge
gelu gemm gemv general geqrf get getrf getri global gpu grad gradient greater grid group grouped gt gte guarded half heap hi high host
householder hyper id identity if ig igamma imag in inclusive increment index indexed indices inf init initial inner inplace input inputs
insert int integer inv invariant inverse is iteration jacobian jit join jvp kernel key kind last layout le leading left len less lhs
library lift lifted linear list live lo load local log logaddexp logical logistic logits logsumexp loop low lower lowering lt lu m main
make map mask masked matmul matrix matvec max maximum mean memcpy memory memset merge merged min minimum minor minus mixed mod mode module
mosaic move mul multi multihost multiply nan nccl ne neg negate new next nextafter nn no node none noop nop norm normal normalization
normalize not nt nvshmem odd of off offset on one op opaque opt optimized or order orgqr ormqr out outer output outside over overflow pad
padded padding pair parallel param parameter part partial partition pass peeled permute permuted phi pipelined pivot pivots plus point pool
popcnt population potrf pow power pred predicate prefix preserve prev product program promote propagate psum push pvary python qr quantize
quantized ragged rand random range rank read real rebuilt reciprocal recv reduce reduced reduction redzone ref region reinterpret rem
remainder remat remote remove renamed reorder repeat replace replica replicated reshape reshard residual result rev reverse rewrite rhs
right rng root round row rows rsqrt s same scale scaled scan scatter schedule scoped scratch search second segment select self send seq
sequence sequential set shape shard sharded sharding shared shift side sigmoid sign signed simple simplified sin sine single sinh size
sizes slice sliced slices slot small softmax solve sort sorted source sparse spec split splitk sqrt square squeeze stack stage start state
static step stop store stream stride sub substitute subtract sum sunk swap syevd symmetric tan tanh target tensor test tf than then
threefry threshold through tile tiled tn to token top topk total trace trans transform transformed transpose transposed tri triangular tril
triton triu true trunc truncate tt tuple two type u uint unary unbounded uniform unique unpack unreduced unroll unrolled unstack unused up
update updated updates upper use valid value values var variable vector view vmap wait weights where while wide widen window with work
wrapped write xla xor zero zeros
"""

_LIBRARIES = """
accum alg allgather allocator alltoall async batch batched bdsqr bfloat bias bidirectional bp cga chol common comparator comparison
converttensor convolve cuds delaykernel delaykernelimpl devicescan devkernel dgrad domino dpradix dtrsv elementary elementwise
elemwisernncell engine epilogue exec fnrma fort fprop gebrd gemmsn generated generic geqr gerc histogram householder im impl info init ipiv
ker kernelimpl knob lacpy laed lansy larft lascl laswp ll lstm makebatchpointers makebatchpointersasynckernel native nccldevkernel nchw
nchwtonhwckernel nhwc nhwcaddpaddingkernel nvjet onesho onesweep ormtr par permutation pivots post product
productofelementaryhouseholderreflectorssmallbatchedleftkernel radixsort rearrangement reducescatter redzone redzoneallocatorkernelimpl
reflectors repeatbufferkernel repeatbufferkernelimpl ring rnn rnncell rnninputrearrangement rnnoutputrearrangement run scal sdpa sgemm sm
smem splitkreduce spradix stedc steqr svd syevj symm sytrd trsm trsv twosho val vectorized wgmma wgrad winograd wmma workspace xmma xx
xxtrf
"""
"""Words of the names of libraries' kernels, as captures of an H200 hold them."""


def _words() -> frozenset[str]:
    known = {*_COMMON.split(), *_LIBRARIES.split()}
    for name in (*OPCODES, *(target for kind in KINDS for target in kind.targets)):
        known.update(word.lower() for word in _WORD.findall(name))
    return frozenset(known)


VOCABULARY = _words()
_LIBRARY_KERNEL = re.compile(r"nvjet_|sm\d{2,3}_|cudnn_generated_|ncclDevKernel_")
"""How only libraries' kernels begin: their types and tiles stand in words of their own."""


class Renamer:
    """Gives each word that is in no name of XLA's or JAX's another, the same wherever it stands: so names that belong together still do."""

    def __init__(self, keep: bool = False) -> None:
        """`keep` leaves every name as it is."""
        self._new: dict[str, str] = {}
        self._keep = keep

    def __call__(self, name: str) -> str:
        """A name with its unknown words replaced; single letters and digits stay."""
        return name if self._keep else _WORD.sub(lambda match: self._renamed(match[0]), name)

    def kernel(self, name: str) -> str:
        """A kernel's new name: a library's stays whole."""
        return name if _LIBRARY_KERNEL.match(name) else self(name)

    def knows(self, name: str) -> bool:
        """Whether a name has words that were replaced, and no others that are unknown."""
        words = [word for word in _WORD.findall(name) if _is_unknown(word)]
        return bool(words) and all(word in self._new for word in words)

    def _renamed(self, word: str) -> str:
        return self._new.setdefault(word, _numbered(len(self._new))) if _is_unknown(word) else word


def _is_unknown(word: str) -> bool:
    return len(word) > 1 and word.lower() not in VOCABULARY


def _numbered(number: int) -> str:
    """A word of letters alone, since digits part words: word_a, word_b, ... would be two."""
    letters = ""
    while number >= 0:
        letters = chr(ord("a") + number % 26) + letters
        number = number // 26 - 1
    return f"Word{letters}"
