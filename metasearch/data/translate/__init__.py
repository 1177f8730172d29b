"""Rows of a train part are translated: after folds are cut, and held against dev and test before they are added."""
