"""``hpn month``: what a month of failures costs a job that fills pods. Modelled at flow level, not measured."""
