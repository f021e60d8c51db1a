"""When a device ran nothing, and what the host did meanwhile."""
