"""How long reports of long captures take, against the least that reading them takes and against other tools: `python -m benchmarks`."""
