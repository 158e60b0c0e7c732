"""The self-test: outages of known length, measured."""
