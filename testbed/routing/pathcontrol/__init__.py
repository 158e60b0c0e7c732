"""Host-switch path control: how a sender learns that a destination is gone in one plane (docs/path-control.md)."""
