"""The sentences about GPU activities whose API call the capture lacks: each reason apart, since what mends one mends no other."""

from __future__ import annotations

from dataclasses import dataclass

from nsys_report.capture.health_items import HealthItem, Severity, part_of

WORTH_A_WARNING = 0.01


@dataclass(frozen=True, slots=True)
class WithoutCall:
    """Activities without an API call, by reason."""

    migrations: int = 0
    """Pages of unified memory that moved: no call asks for it."""
    nested: int = 0
    """Nodes in loops and branches of CUDA graphs, which the device launches."""
    before: int = 0
    """Begun before the first recorded call."""
    unnamed: int = 0
    """Without a correlation id."""
    unrecorded: int = 0
    """With the id of a call that the capture lacks."""


def unlaunched_items(alone: WithoutCall, unpaired: int, activities: int) -> list[HealthItem]:
    """`unpaired` launches have no record of their own, `activities` is how many there are in all."""
    return [
        item for item in (_migrations(alone), _nested(alone), _before(alone, activities), _unknown(alone, unpaired, activities)) if item
    ]


def _migrations(alone: WithoutCall) -> HealthItem | None:
    copies = "1 copy" if alone.migrations == 1 else f"{alone.migrations:,} copies"
    text = f"{copies} moved pages of unified memory on access: no API call asks for that"
    remedy = "prefetch (cudaMemPrefetchAsync) or use device memory"
    return HealthItem("migrations", "info", text, remedy) if alone.migrations else None


def _nested(alone: WithoutCall) -> HealthItem | None:
    text = f"{alone.nested:,} GPU activities were launched by the device, in loops and branches of CUDA graphs: no API call is theirs"
    return HealthItem("device-launched", "info", text) if alone.nested else None


def _before(alone: WithoutCall, activities: int) -> HealthItem | None:
    if not alone.before:
        return None
    share = part_of(alone.before, activities)
    text = f"{alone.before:,} of {activities:,} GPU activities ({share}) have no API call: launched before the window"
    severity: Severity = "warning" if alone.before > WORTH_A_WARNING * activities else "info"
    remedy = "wait for the device (block_until_ready) before cudaProfilerStart and before cudaProfilerStop"
    return HealthItem("unlaunched", severity, text, remedy)


def _unknown(alone: WithoutCall, unpaired: int, activities: int) -> HealthItem | None:
    """Activities that name no call or one that is not there, and the launches that lack a record beside them."""
    count = alone.unnamed + alone.unrecorded
    if not count:
        return None
    why = (
        "they name none"
        if not alone.unrecorded
        else "those that they name are not recorded"
        if not alone.unnamed
        else "they name none, or one that is not recorded"
    )
    text = f"{count:,} of {activities:,} GPU activities ({part_of(count, activities)}) have no API call: {why}"
    if unpaired:
        text += f"; {unpaired:,} launches have no record that names them, so that which launched what is unknown"
    severity: Severity = "warning" if count > WORTH_A_WARNING * activities else "info"
    remedy = "export the report again without --times; capture with -t cuda (all API calls)"
    return HealthItem("unpaired", severity, text, remedy)
