"""The version of the distribution: written once, read by the build, the command line and the cache."""

__version__ = "0.1.0.dev0"
