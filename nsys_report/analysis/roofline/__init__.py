"""What work costs and what the device could do at best: bytes, arithmetic, ceilings, roofs."""
