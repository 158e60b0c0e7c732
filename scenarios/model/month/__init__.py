"""Cost of a month of failures for a job that fills pods (``hpn month``). Modelled at flow level, not measured."""
