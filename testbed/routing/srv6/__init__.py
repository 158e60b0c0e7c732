"""Static SRv6 paths by micro-SIDs (uSIDs, the NEXT-CSID flavor of RFC 9800): numbers, tables and carriers. Pure."""
