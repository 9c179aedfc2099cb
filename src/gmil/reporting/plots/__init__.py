"""All plots as SVG: elements and axes, charts, plots of measurements and of models, figures as files."""
