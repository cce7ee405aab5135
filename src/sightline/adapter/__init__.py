"""The consistency adapter for frozen vision-language models (MM-R3, section 5): train, save, attach."""
