"""Drills: schema, loading and checks, from a drill file to a ``Drill``."""
