"""RoCE-like streams: packets at a rate from sender to receiver, and a record of each."""
