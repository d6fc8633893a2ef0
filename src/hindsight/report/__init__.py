"""Certificates as pages."""
