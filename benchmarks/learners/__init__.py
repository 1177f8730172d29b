"""Learners that benchmarks study, as plug-ins of a package of their own (CONTRIBUTING: From a package of your own)."""

import sys
from pathlib import Path

from metasearch.config import registry


def register() -> None:
    """Offer the learners by their entry points, which are in a folder beside this file."""
    sys.path.append(str(Path(__file__).parent))
    registry._offered.cache_clear()
