"""The fabric: every node, port, link, address, MAC, ifindex, ASN and seed, computed without a kernel (DESIGN rule 1)."""
