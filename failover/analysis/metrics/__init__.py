"""The figures of a run, computed from its records. Imports numpy."""
