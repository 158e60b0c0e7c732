"""A drill answered by the flow-level model instead of a lab: no packet is sent, and each figure says so. PURE."""
