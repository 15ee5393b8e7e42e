"""Questions about models and values that change neither."""
