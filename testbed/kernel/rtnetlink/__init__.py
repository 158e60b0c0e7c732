"""rtnetlink: links, addresses, routes, neighbours and queue disciplines, asked and read."""
