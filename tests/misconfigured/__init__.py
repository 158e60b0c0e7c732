"""Correct networks of FRR and BIRD configurations, drawn; mistakes planted in them, and where hpn names each."""
