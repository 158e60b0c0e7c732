"""A running fabric: namespaces and veths, daemons, monitors, fault actions, and access from outside."""
