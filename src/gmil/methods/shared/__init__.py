"""What several families share: scaling, tuning inside folds, parameter constraints."""
