"""Roles that people give: a roles file (TOML) or a serving manifest (JSON). They win over what the program shows."""

from __future__ import annotations

from dataclasses import dataclass

from hlo_mapping.dataflow import Graph


@dataclass(frozen=True, slots=True)
class RoleOverrides:
    """Roles given by pattern, or by the order and sizes of a manifest's inputs."""

    def resolve(self, graph: Graph) -> dict[int, tuple[str, str]]:
        """The role and its reason, by node."""
        return {}
