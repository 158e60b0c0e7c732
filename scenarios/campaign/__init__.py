"""Campaigns: random sequences of faults, invariants checked after each, violations shrunk to a small drill file."""
