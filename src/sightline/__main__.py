"""`python -m sightline`."""

from sightline.cli.main import entry

if __name__ == "__main__":
    entry()
