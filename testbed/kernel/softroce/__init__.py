"""The kernel's Soft-RoCE: devices and whether it serves a lab."""
