"""Reliable connections as RoCEv2 has them: the packets on the wire and the machines at both ends."""
