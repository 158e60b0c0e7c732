"""Clients: programs that nobody here wrote, or that know nothing of a lab, run by a drill on its hosts. PURE."""
