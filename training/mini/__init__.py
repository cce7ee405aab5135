"""`mini`: a LLaVA of a million parameters, trained from scratch on synthetic scenes."""
