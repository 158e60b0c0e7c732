"""Faults and their effects: catalogue, injector, outage metrics, phases, noise floor."""
