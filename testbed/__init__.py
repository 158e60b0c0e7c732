"""The testbed: the fabric as data, and the lab that makes it run in Linux namespaces."""

PACKAGES = ("commands", "failover", "hpn", "results", "scenarios", "testbed", "traffic")
"""All that hpn is made of, ``cli`` apart: guests need it as byte code, the workers of a pool must have it alike."""
