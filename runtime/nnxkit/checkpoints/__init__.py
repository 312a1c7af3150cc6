"""Checkpoints: the state of models on disk. ``nnx.checkpoints.save(path, model)``.

Three ways, which share one notion of what fits what: directories in the format of Orbax (`save`, `restore`), the
steps of a training run (`Manager`), and weights in safetensors files (`save_safetensors`, `load_safetensors`).
Whatever is read is compared with the model first, and every difference named by its path; a model is written to when
everything has been read, or not at all.

``pip install 'nnxkit[checkpoint]'`` brings the packages for it, which are imported when they are needed.
"""

from nnxkit.checkpoints._manager import Manager as Manager
from nnxkit.checkpoints._names import Rename as Rename
from nnxkit.checkpoints._orbax import PendingSave as PendingSave
from nnxkit.checkpoints._orbax import restore as restore
from nnxkit.checkpoints._orbax import save as save
from nnxkit.checkpoints._orbax import save_async as save_async
from nnxkit.checkpoints._safetensors import load_safetensors as load_safetensors
from nnxkit.checkpoints._safetensors import save_safetensors as save_safetensors
