"""The classes of work, and the finer kinds within them: what the facts' columns `kernel_class` and `class_detail` may hold."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

KernelClass: TypeAlias = Literal["weights", "kv_write", "kv_gather", "attention", "other"]
"""What an instruction works on; null in a table where the dataflow does not tell."""
KERNEL_CLASSES: tuple[KernelClass, ...] = get_args(KernelClass)

Detail: TypeAlias = Literal[
    "broadcast",
    "collective",
    "concatenate",
    "convert",
    "convolution",
    "copy",
    "custom call",
    "elementwise",
    "embedding",
    "entry",
    "fft",
    "gather",
    "gradient",
    "index",
    "loop control",
    "norm",
    "optimizer",
    "pad",
    "pooling",
    "precompute",
    "product",
    "random",
    "reduce",
    "relayout",
    "reorder",
    "rope",
    "sampling",
    "scatter",
    "slice",
    "softmax",
    "solver",
    "sort",
    "transfer",
    "transpose",
    "update",
]
"""What it does with them."""
DETAILS: tuple[Detail, ...] = get_args(Detail)
