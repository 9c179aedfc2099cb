"""Cross-validation of bags: folds, `cross_validate`, its result, metrics."""
