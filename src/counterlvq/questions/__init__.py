"""Questions beyond the closest counterfactual, one per file, asked through an explainer."""
