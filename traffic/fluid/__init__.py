"""Flows as rates over directed links: max-min shares, constant rates with loss, and pods too large for packets. PURE.

Results of this package are not measured: a caller that shows them must label them *modelled*.
"""
