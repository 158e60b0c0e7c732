"""rtnetlink: requests and answers about links, addresses, routes, neighbours and queue disciplines."""
