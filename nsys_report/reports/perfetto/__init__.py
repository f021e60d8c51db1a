"""Takes an analysed capture, gives a trace that ui.perfetto.dev opens."""
