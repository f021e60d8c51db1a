"""Takes a path to an nsys export, gives a Capture: Arrow tables of what ran on the GPU, what launched it, and the rest."""

from nsys_report.capture.opening import open_capture

__all__ = ["open_capture"]
