"""Clients: third-party programs, or programs without knowledge of a lab, that a drill runs on its hosts. PURE."""
