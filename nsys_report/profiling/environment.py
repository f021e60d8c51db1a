"""The environment that a program runs in: XLA's dump added to its flags, no compilation cache, the hook, its rank."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from nsys_report.errors import UsageError
from nsys_report.profiling.hook.nsys_report_window import LOG
from nsys_report.profiling.window_spec import WindowSpec

HOOK = Path(__file__).with_name("hook")
RANKS = ("SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "RANK")
"""Where srun, mpirun and torchrun say which process this is."""


def rank_of(environment: Mapping[str, str]) -> int | None:
    """The rank of this process where something started several, else None."""
    for name in RANKS:
        value = environment.get(name, "")
        if value.isascii() and value.isdigit():
            return int(value)
    return None


def xla_flags(given: str, dump: Path) -> str:
    """The flags given and those that dump HLO text, before and after XLA's passes. Raises UsageError where they dump elsewhere."""
    flags = shlex.split(given)
    for flag in flags:
        if flag.startswith("--xla_dump_to="):
            raise UsageError(f"XLA_FLAGS holds {flag} already", "leave --xla_dump_to out of XLA_FLAGS: the dump belongs to the run")
    added = [f"--xla_dump_to={dump}", "--xla_dump_hlo_as_text"]
    return " ".join([*([given] if given else []), *(flag for flag in added if flag not in flags)])


def program_environment(base: Mapping[str, str], dump: Path, log: Path, window: WindowSpec) -> dict[str, str]:
    """What to set for the program over `base`: nothing of the user's is replaced but the compilation cache, which is off."""
    ours = {
        "XLA_FLAGS": xla_flags(base.get("XLA_FLAGS", ""), dump),
        # a program out of the cache is not compiled, so that older XLA dumps nothing of it
        "JAX_ENABLE_COMPILATION_CACHE": "false",
        "PYTHONPATH": os.pathsep.join(filter(None, [str(HOOK), base.get("PYTHONPATH", "")])),
        LOG: str(log),
        **window.environment(),
    }
    return ours
