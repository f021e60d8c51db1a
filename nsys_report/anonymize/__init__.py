"""Captures and dumps fit to be attached to a public report: what names a machine or a person is left out, the figures stay."""
