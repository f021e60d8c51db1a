"""Takes a path to an nsys export, gives a Capture: Arrow tables of what ran on the GPU, what launched it, and the rest."""

from nsys_report.capture.opening import check_capture, open_capture

__all__ = ["check_capture", "open_capture"]
