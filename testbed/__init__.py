"""The testbed: the fabric as data, and the lab that makes it run in Linux namespaces."""
