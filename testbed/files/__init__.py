"""YAML files of users with the lines of their mistakes, and the quantities in them."""
