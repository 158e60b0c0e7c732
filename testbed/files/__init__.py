"""YAML files of users, with line numbers for their mistakes, and the quantities in them."""
