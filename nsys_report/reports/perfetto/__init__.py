"""Takes an analyzed capture, gives a trace that ui.perfetto.dev opens."""
