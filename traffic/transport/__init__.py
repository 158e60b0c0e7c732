"""Reliable connections as in RoCEv2: packets on the wire, and the state machines at both ends."""
