"""Fault actions on a running lab, each with its inverse."""
