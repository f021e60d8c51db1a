"""Takes a capture and a dump's programs; gives executions: which activities are one run of one program on one device."""
