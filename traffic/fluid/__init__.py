"""Flows as rates over directed links: max-min shares, constant rates with loss, and pods too large for packets. PURE.

Nothing here is measured: whoever shows a figure of these says *modelled*.
"""
