"""The fabric: every name, number and address of a network, computed without a kernel (DESIGN rule 1)."""
