"""Takes an analyzed capture, gives its timeline as a frozen value: host threads, programs, streams and idle time on one axis."""
