"""Served models under load: requests and their latencies, a server's own log of its calls, and the two laid over a capture."""
