"""The version of the package, also where the package itself must not be imported."""

__version__ = "0.1.0"
