"""Flow-level model of a drill, instead of a lab: no packet is sent, and each figure says so. PURE."""
