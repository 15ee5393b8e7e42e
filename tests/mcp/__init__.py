"""Tests of models as tools for a coding assistant."""
