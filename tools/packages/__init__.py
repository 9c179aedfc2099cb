"""Packages of gmil: the source archive, the wheel, and tests of the wheel where nothing else is."""
