"""Takes the GPU at hand and a framework that drives it; gives measured ceilings as an entry of the table of GPUs."""
