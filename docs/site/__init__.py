"""Makes the site of the documentation: the pages of the repository, and a reference read from the code.

``make site`` runs it. Nothing of hpn imports it; it imports what it documents.
"""
