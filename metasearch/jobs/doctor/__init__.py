"""`metasearch doctor`: what is installed here, and whether runs, studies and encoders are sound."""
