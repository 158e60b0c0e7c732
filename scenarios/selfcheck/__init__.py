"""Checks of hpn itself: speed (bench) and outages of known length (selftest)."""
