"""Captures and dumps with faults put in: a report or one clear message comes out, and what cannot matter changes nothing."""
