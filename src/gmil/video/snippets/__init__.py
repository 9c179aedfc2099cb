"""Features of snippets as the field of anomaly detection keeps and scores them: I3D, X3D, C3D, CLIP."""
