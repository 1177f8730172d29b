"""Episodes: labelled sets drawn along one arrangement, each a pure function of (seed, phase, index). No torch here."""
