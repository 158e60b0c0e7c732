"""Networks from files of other tools: containerlab, netlab, SONiC, NetBox, CSV, SimAI; and back to some of them."""
