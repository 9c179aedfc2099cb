"""What several families share: scaling, tuning inside folds, arrays in the form that methods need."""
