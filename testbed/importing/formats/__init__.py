"""One module per format of other tools: text in, a network as the file has it out. Pure."""
