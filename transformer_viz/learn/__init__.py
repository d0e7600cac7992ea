"""Lessons: what is read from their files, the questions that a run answers, and what checks and prints them."""
