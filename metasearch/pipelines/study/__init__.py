"""Cross-validation: learners × modes × folds × seeds as cells of a study, each in a process of its own."""
