"""The command `hindsight`: each module here adds its verbs to one application."""

from . import learn as learn
from .app import app as app
