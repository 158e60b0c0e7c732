"""Programs that clients run. Each stands alone: it knows its environment and the line format, and nothing of hpn."""
