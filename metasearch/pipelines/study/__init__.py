"""Cross-validation: learners × modes × folds × seeds as jobs of a study, each in its own process."""
