"""The kernel's Soft-RoCE: its devices, and a probe whether labs can use it."""
