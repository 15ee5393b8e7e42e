"""Tests in real JupyterLab in headless Chromium: what a user does and sees."""
