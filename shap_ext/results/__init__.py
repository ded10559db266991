"""Estimates as shap's Explanation objects."""
