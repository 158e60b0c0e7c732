"""From a drill file to a ``Drill``: schema, load, checks."""
