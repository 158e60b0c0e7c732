"""Host-switch path control: senders learn that a destination is lost in one plane (docs/path-control.md)."""
