"""One module for each client that a drill may name; ``traffic.client.registry`` lists them."""
