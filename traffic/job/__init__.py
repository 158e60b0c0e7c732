"""Jobs: placement of ranks, and their work in each iteration. PURE."""
