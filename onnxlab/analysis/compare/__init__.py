"""Values of two models, of two providers, or of a model and a recording, compared pair by pair."""
