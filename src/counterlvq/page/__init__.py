"""The page where people move sliders and watch the proof hold: static files, one template."""
