"""`mini`: a LLaVA of a million parameters, trained from scratch on drawn scenes."""
