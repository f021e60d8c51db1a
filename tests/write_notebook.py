"""Runs the worked notebook and stores what it gives: `python -m tests.write_notebook`. Tests run it too, and keep nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
NOTEBOOK = ROOT / "fixtures" / "notebook" / "decode.ipynb"

RUNNER = """
import sys
import nbclient, nbformat
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager

source, target, folder, root = sys.argv[1:]
notebook = nbformat.read(source, as_version=4)
manager = AsyncKernelManager()
command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
manager._kernel_spec = KernelSpec(argv=command, display_name="Python 3", language="python", env={"PYTHONPATH": root})
nbclient.NotebookClient(notebook, km=manager, timeout=120, resources={"metadata": {"path": folder}}).execute()
for cell in notebook.cells:
    cell.metadata.pop("execution", None)  # when it ran
notebook.metadata.language_info = {"name": "python"}
nbformat.write(notebook, target)
"""
"""Runs a notebook as Jupyter would, in this environment. A process of its own, since the client leaves sockets to the collector."""


def run(source: Path, target: Path) -> None:
    """Runs a notebook in its folder and writes it with what it gave. Raises AssertionError where a cell fails."""
    command = [sys.executable, "-W", "ignore", "-c", RUNNER, str(source), str(target), str(source.parent), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


if __name__ == "__main__":
    run(NOTEBOOK, NOTEBOOK)
