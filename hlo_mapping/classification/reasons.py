"""Reasons of classification that later stages ask for by name; the facts' column class_rule holds them."""

from __future__ import annotations

COPIES_CACHE = "copies a cache"
"""A kernel or copy whose result is a cache and nothing but that cache."""
SUMS_SPLIT_PRODUCT = "sums a product that another launch wrote out"
_WRITES_SPLIT_PRODUCT = ", written out for a later sum"


def written_out(reason: str) -> str:
    """The reason of a product, told of one whose single products are written to memory for another launch to sum."""
    return reason + _WRITES_SPLIT_PRODUCT


def is_written_out(reason: str | None) -> bool:
    """Whether a launch is the first half of a product that was split in two."""
    return reason is not None and reason.endswith(_WRITES_SPLIT_PRODUCT)
