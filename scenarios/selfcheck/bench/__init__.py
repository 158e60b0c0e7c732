"""Bench (``hpn bench``): the figures this project claims, measured now, alongside stock Mininet if installed."""
