"""Jobs: which ranks are where, and what they do over and over; figures from what that took. PURE."""
