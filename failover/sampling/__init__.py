"""Sampling of host and ports during a drill."""
