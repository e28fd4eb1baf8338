"""The report as one HTML file: text that is there at once, figures that draw when they are seen."""
