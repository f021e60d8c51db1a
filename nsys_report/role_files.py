"""What the user knows about parameters, from the files that the command line and `analyze` take."""

from __future__ import annotations

from pathlib import Path

from hlo_mapping.classification.overrides import RoleOverrides, read_manifest, read_roles_file


def overrides_from(roles: str | Path | None, manifest: str | Path | None) -> RoleOverrides | None:
    """The roles that a file or a serving manifest gives; the roles file wins where both are there. HloError for one that cannot be read."""
    if roles is not None:
        return read_roles_file(Path(roles))
    return read_manifest(Path(manifest)) if manifest is not None else None
