"""The edge to Linux: namespaces, sandbox, netlink, nftables. Knows nothing of fabrics; lowest layer of testbed."""
