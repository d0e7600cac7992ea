"""Lessons: reads their files, makes their questions and right answers from runs, checks them, and prints question sheets."""
