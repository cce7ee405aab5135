"""What makes a frozen vision-language model more consistent (MM-R3, section 5): trained, attached, saved."""
