"""Programs and kernels nobody here wrote, as the far end of ours or beside it."""
