"""Objectives of preference pairs."""
