"""Faults and what they did: catalogue, injector, outage metrics, phases, noise floor."""
