"""Programs that clients run. Each is self-contained: it uses its environment and the line format, and no other hpn
code."""
