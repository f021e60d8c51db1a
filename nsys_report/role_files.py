"""What the user knows about parameters, from the files that the command line and `analyze` take."""

from __future__ import annotations

from pathlib import Path

from hlo_mapping import RoleOverrides, read_manifest, read_roles_file


def overrides_from(roles: str | Path | None, manifest: str | Path | None) -> RoleOverrides | None:
    """The roles that a file and a serving manifest give; the file wins where both speak. HloError for one that cannot be read."""
    given = read_roles_file(Path(roles)) if roles is not None else None
    served = read_manifest(Path(manifest)) if manifest is not None else None
    return given.merged(served) if given is not None and served is not None else given or served
