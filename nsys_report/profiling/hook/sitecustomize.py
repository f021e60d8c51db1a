"""Python runs this at its start when this folder leads PYTHONPATH: it installs the window, then the sitecustomize that it hides.

Nothing here may break the program: what fails is left undone.
"""

import contextlib
import importlib
import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def _run_hidden() -> None:
    """The environment's own sitecustomize, which this file stands before."""
    kept, own = list(sys.path), sys.modules[__name__]
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != HERE]
    try:
        sys.modules.pop("sitecustomize", None)
        if importlib.util.find_spec("sitecustomize") is not None:
            importlib.import_module("sitecustomize")
    finally:
        sys.modules.setdefault("sitecustomize", own)
        sys.path[:] = kept


with contextlib.suppress(Exception):
    importlib.import_module("nsys_report_window").install(os.environ)
with contextlib.suppress(Exception):
    _run_hidden()
