"""Location of faults from what end hosts see: which links, ports or nodes explain the packets that were lost."""
