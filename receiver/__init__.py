"""Receiver: a payment-webhook inbox service on Flask and PostgreSQL."""

__version__ = "0.1.0"
