"""Models of other libraries, wrapped so that decoding, search, edits and checks run them like our own."""

from transformer_viz.readers.models import Entry as Entry
from transformer_viz.readers.models import check_loadable as check_loadable
from transformer_viz.readers.models import entries as entries
from transformer_viz.readers.models import find_name as find_name
from transformer_viz.readers.models import load_model as load_model
from transformer_viz.readers.models import load_named as load_named
