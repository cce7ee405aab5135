"""How the embedded model was made: lessons, training, exam. Not a part of the package."""
