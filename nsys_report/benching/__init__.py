"""Runs whole files of cases and makes records of them."""
