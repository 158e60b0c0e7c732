"""``hpn bench``: the figures this project claims, measured here and now, beside stock Mininet where it is installed."""
