"""Drills: what a drill file says, whether it makes sense, how a run of it is judged, and the library of them."""
