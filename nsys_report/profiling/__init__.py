"""Runs programs under Nsight Systems, from the command to the export that the rest of the package reads."""
