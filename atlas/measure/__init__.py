"""Measuring: reads cases and traces, and calls no stage of the pipeline."""
