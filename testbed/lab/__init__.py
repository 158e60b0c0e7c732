"""A running fabric: namespaces and veths, daemons, monitors, faults' levers, and the ways in from outside."""
