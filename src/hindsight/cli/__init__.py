"""The command `hindsight`: each module here adds its verbs to one application."""

from . import certify as certify
from . import densities as densities
from . import echo as echo
from . import evaluate as evaluate
from . import forecasts as forecasts
from . import learn as learn
from . import look as look
from . import models as models
from . import serve as serve
from .app import app as app
