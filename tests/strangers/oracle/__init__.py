"""Judges a run folder by means of its own: standard library only, and not a line of hpn's.

What it takes from the folder is what was there (fabric, faults, rates) and what was seen (paths, losses, deaths). What
had to come of it, it computes anew: which queue pair had a path, what each link was offered, why a limit broke.
"""
