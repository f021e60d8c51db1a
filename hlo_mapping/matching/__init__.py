"""Takes launches and programs; gives executions and, for each launch, the HLO instruction behind it."""
